"""vperf-bench: what virtualization and tracing cost a workload, measured by itself, through reboots."""
