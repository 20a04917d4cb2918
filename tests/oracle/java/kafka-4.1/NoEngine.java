/** The engine's verbs run on Kafka 4.2 and newer: the records of 4.1's classes have other accessors. */
final class NoEngine {
    private NoEngine() { }

    static void refuse() {
        throw new UnsupportedOperationException("the engine's verbs run on Kafka 4.2 and newer");
    }
}

final class EngineRuns {
    private EngineRuns() { }

    static void one(Oracle.Arguments a) {
        NoEngine.refuse();
    }

    static void all(Oracle.Arguments a) {
        NoEngine.refuse();
    }
}

final class EngineBench {
    private EngineBench() { }

    static void run(Oracle.Arguments a) {
        NoEngine.refuse();
    }
}
