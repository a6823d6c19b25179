from sassir.verify.schedule.check import check_schedule

__all__ = ["check_schedule"]
