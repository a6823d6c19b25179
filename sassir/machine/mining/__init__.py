"""Makes the latency tables: what ptxas's code shows, chain kernels for what it leaves open, measurements, published values."""
