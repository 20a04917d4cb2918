import org.apache.kafka.server.util.Scheduler;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ScheduledFuture;

/** Runs what is due at once, and what is due later when the clock gets there, in the order of time, then of scheduling. */
final class EngineScheduler implements Scheduler {
    private record Task(long due, Runnable what) { }

    private final StillClock clock;
    private final List<Task> later = new ArrayList<>();
    final Map<String, Runnable> periodic = new LinkedHashMap<>(); // run by name only

    EngineScheduler(StillClock clock) {
        this.clock = clock;
    }

    public void startup() { }

    public void shutdown() { }

    public void resizeThreadPool(int n) { }

    public synchronized ScheduledFuture<?> schedule(String name, Runnable task, long delayMs, long periodMs) {
        if (periodMs >= 0) periodic.put(name, task);
        else if (delayMs <= 0) task.run();
        else later.add(new Task(clock.now + delayMs, task));
        return new PartitionLog.Never();
    }

    /** Runs all that is due by now; a task may schedule another. */
    synchronized void tick() {
        while (true) {
            Task next = null;
            for (Task t : later) if (t.due <= clock.now && (next == null || t.due < next.due)) next = t;
            if (next == null) return;
            later.remove(next);
            next.what.run();
        }
    }

    synchronized void forget() {
        later.clear();
        periodic.clear();
    }
}
