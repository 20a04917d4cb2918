import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.storage.internals.log.LogSegment;
import org.apache.kafka.storage.internals.log.UnifiedLog;

import com.sun.management.OperatingSystemMXBean;
import java.io.File;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;

/** Kafka's cleaner, timed. */
final class Bench {
    private Bench() { }

    private static final OperatingSystemMXBean SYSTEM = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

    /** oracle bench LOG_DIR TOPIC-PARTITION [--repeat N] [--config K=V]…: Kafka's cleaner on copies of the log, timed, round after round until the log is clean. */
    static void bench(Oracle.Arguments a) throws Exception {
        Path from = new File(a.positional.get(0)).toPath();
        TopicPartition tp = UnifiedLog.parseTopicPartitionName(new File(a.positional.get(1)).getAbsoluteFile());
        for (int i = 0; i < a.number("repeat", 3); i++) {
            Path to = Files.createTempDirectory(from.toAbsolutePath().getParent(), "bench");
            Trees.copy(from, to);
            StillClock clock = new StillClock(a.number("now", System.currentTimeMillis()));
            UnifiedLog log = PartitionLog.open(to.toFile(), tp, PartitionLog.logConfig(a.config), clock, true);
            long before = log.logSegments().stream().mapToLong(LogSegment::size).sum();
            Trees.read(to);
            long cpu0 = SYSTEM.getProcessCpuTime(), t0 = System.nanoTime();
            ObjectNode out;
            int rounds = 0;
            do {
                out = Cleaning.cleanOpen(to.toFile(), log, clock, a.number("first-dirty", -1), a.number("uncleanable", -1), -1);
                rounds++;
            } while (out.path("cleaned").asBoolean() && out.path("end_offset").asLong() < out.path("first_uncleanable_offset").asLong());
            double s = (System.nanoTime() - t0) / 1e9, cpu = (SYSTEM.getProcessCpuTime() - cpu0) / 1e9;
            long after = log.logSegments().stream().mapToLong(LogSegment::size).sum();
            log.close();
            System.out.println(out.put("seconds", s).put("cpu_seconds", cpu).put("rounds", rounds).put("bytes_before", before).put("bytes_after", after)
                .put("mb_per_second", before / s / 1e6).put("records_per_second", out.path("messages_read").asLong() / s));
            Trees.delete(to);
        }
    }
}
