"""The alerts of conf/prometheus, held by Prometheus' own tool: `make test-alerts`."""
