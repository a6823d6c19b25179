"""Facts about code that passes and translations ask for."""
