import org.apache.kafka.common.utils.Time;

import java.util.function.Supplier;

/** A clock that stands still until it is set. */
final class StillClock implements Time {
    long now;

    public long milliseconds() {
        return now;
    }

    public long nanoseconds() {
        return now * 1_000_000L;
    }

    public void sleep(long ms) {
        now += ms;
    }

    public void waitObject(Object obj, Supplier<Boolean> condition, long deadlineMs) {
        throw new UnsupportedOperationException();
    }
}
