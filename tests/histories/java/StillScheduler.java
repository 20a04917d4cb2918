import org.apache.kafka.server.util.Scheduler;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Delayed;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;

/** Runs at once what is due at once, and what is due later when the clock gets there. Nothing is run again and again. */
final class StillScheduler implements Scheduler {
    private record Task(long due, Runnable what) { }

    private final StillClock clock;
    private final List<Task> later = new ArrayList<>();

    StillScheduler(StillClock clock) {
        this.clock = clock;
    }

    public void startup() { }

    public void shutdown() { }

    public void resizeThreadPool(int n) { }

    public synchronized ScheduledFuture<?> schedule(String name, Runnable task, long delayMs, long periodMs) {
        if (periodMs < 0 && delayMs <= 0) task.run();
        else if (periodMs < 0) later.add(new Task(clock.now + delayMs, task));
        return new Never();
    }

    /** Sets the clock, and runs what is due by then, in the order of time; a task may schedule another. */
    synchronized void advance(long now) {
        clock.now = now;
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
    }

    private static final class Never extends CompletableFuture<Void> implements ScheduledFuture<Void> {
        public long getDelay(TimeUnit unit) {
            return 0;
        }

        public int compareTo(Delayed other) {
            return 0;
        }
    }
}
