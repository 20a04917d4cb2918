import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.metadata.ConfigRepository;
import org.apache.kafka.server.util.FileLock;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.log.CleanerConfig;
import org.apache.kafka.storage.internals.log.LogCleaner;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogManager;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

import java.io.File;
import java.io.IOException;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.Predicate;

/** Calls of a LogManager whose types were Scala's up to Kafka 4.3. */
final class EngineLogManagers {
    private EngineLogManagers() { }

    /** With a cleaner that has no threads: the manager keeps its checkpoint in order. */
    static LogManager create(List<File> dirs, ConfigRepository overrides, LogConfig defaults, ProducerStateManagerConfig producers,
                             Scheduler scheduler, Time clock, long taskDelayMs) throws IOException {
        LogManager.LogCleanerBuilder cleaner = (c, d, logs, failures, time) -> new LogCleaner(c, d, logs, failures, time) {
            @Override
            public void startup() { }
        };
        return new LogManager(dirs, List.of(), overrides, defaults, new CleanerConfig(true), 1, 1_000, 60_000, 60_000, 300_000, 300_000,
            producers, 600_000, scheduler, new BrokerTopicStats(), new LogDirFailureChannel(10), clock, false, taskDelayMs, cleaner);
    }

    static void startup(LogManager manager, Set<String> topics, Predicate<UnifiedLog> stray) throws Exception {
        manager.startup(topics, stray::test);
    }

    /** Null where there is none. */
    static UnifiedLog log(LogManager manager, TopicPartition tp, boolean future) {
        return manager.getLog(tp, future).orElse(null);
    }

    static Collection<UnifiedLog> logs(LogManager manager) {
        return manager.allLogs();
    }

    static Collection<FileLock> locks(LogManager manager) {
        return manager.dirLocks();
    }

    static void createLog(LogManager manager, TopicPartition tp, boolean future) throws IOException {
        manager.getOrCreateLog(tp, true, future, Optional.empty(), Optional.empty());
    }

    static void truncate(LogManager manager, Map<TopicPartition, Object> offsets) {
        Map<TopicPartition, Long> typed = new HashMap<>();
        offsets.forEach((tp, offset) -> typed.put(tp, (Long) offset));
        manager.truncateTo(typed, false);
    }
}
