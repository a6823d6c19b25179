"""Order and control codes of allocated code: what ptxas decides last."""
