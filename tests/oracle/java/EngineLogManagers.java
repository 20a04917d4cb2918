import kafka.log.LogManager;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.metadata.ConfigRepository;
import org.apache.kafka.server.util.FileLock;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.log.CleanerConfig;
import org.apache.kafka.storage.internals.log.LogCleaner;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

import scala.Function1;
import scala.Function5;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

import java.io.File;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentMap;
import java.util.function.Predicate;

/** Calls of a LogManager whose types are Scala's up to Kafka 4.3, in Java's types; kafka-4.4 has the same of a LogManager in Java. */
final class EngineLogManagers {
    private EngineLogManagers() { }

    /** With a cleaner that has no threads: the manager keeps its checkpoint in order. */
    static LogManager create(List<File> dirs, ConfigRepository overrides, LogConfig defaults, ProducerStateManagerConfig producers,
                             Scheduler scheduler, Time clock, long taskDelayMs) {
        Function5<CleanerConfig, List<File>, ConcurrentMap<TopicPartition, UnifiedLog>, LogDirFailureChannel, Time, LogCleaner> cleaner =
            (c, d, logs, failures, time) -> new LogCleaner(c, d, logs, failures, time) {
                @Override
                public void startup() { }
            };
        return new LogManager(CollectionConverters.asScala(dirs).toSeq(), CollectionConverters.asScala(List.<File>of()).toSeq(),
            overrides, defaults, new CleanerConfig(true), 1, 1_000, 60_000, 60_000, 300_000, 300_000, producers, 600_000,
            scheduler, new BrokerTopicStats(), new LogDirFailureChannel(10), clock, false, taskDelayMs, cleaner);
    }

    static void startup(LogManager manager, Set<String> topics, Predicate<UnifiedLog> stray) {
        Function1<UnifiedLog, Object> isStray = stray::test;
        manager.startup(CollectionConverters.asScala(topics), isStray);
    }

    /** Null where there is none. */
    static UnifiedLog log(LogManager manager, TopicPartition tp, boolean future) {
        Option<UnifiedLog> found = manager.getLog(tp, future);
        return found.isEmpty() ? null : found.get();
    }

    static Collection<UnifiedLog> logs(LogManager manager) {
        return CollectionConverters.asJavaCollection(manager.allLogs());
    }

    static Collection<FileLock> locks(LogManager manager) {
        return CollectionConverters.asJavaCollection(manager.dirLocks());
    }

    static void createLog(LogManager manager, TopicPartition tp, boolean future) {
        manager.getOrCreateLog(tp, true, future, Optional.empty(), Option.empty());
    }

    static void truncate(LogManager manager, Map<TopicPartition, Object> offsets) {
        manager.truncateTo(CollectionConverters.asScala(offsets), false);
    }
}
