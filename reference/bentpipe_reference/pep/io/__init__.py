"""The box of PEP/1 as a program on Linux: TUN devices, the kernel's routes, metrics, a log."""
