"""With a local master nothing listens but on the loopback interface, and there is no web interface.

The session of these tests speaks TCP where a run's own would use Unix sockets: all ports there are.
"""

from ipaddress import ip_address
from typing import Any

import psutil
import pytest
from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_all_ports_of_spark_are_on_the_loopback_interface(spark: SparkSession) -> None:
    numbers = spark.sparkContext.parallelize(range(4), 2)
    assert numbers.map(lambda number: 2 * number).collect() == [0, 2, 4, 6]  # workers are up
    gateway: Any = spark.sparkContext._gateway
    java = psutil.Process(gateway.proc.pid)
    processes = [java, *java.children(recursive=True), psutil.Process()]
    listening = {
        connection.laddr.ip
        for process in processes
        for connection in process.net_connections(kind="inet")
        if connection.status == psutil.CONN_LISTEN
    }
    assert listening
    assert {
        ip for ip in listening if not ip_address(ip.replace("::ffff:", "")).is_loopback
    } == set()
    assert spark.sparkContext.uiWebUrl is None
