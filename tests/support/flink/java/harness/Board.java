package harness;

import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;

/** Where operators and the main thread meet: the mini cluster runs in this JVM. One board a run. */
final class Board {
    private static final Map<String, Board> BOARDS = new ConcurrentHashMap<>();

    /** What each subtask found when it opened. */
    final Queue<Map<String, Object>> opened = new ConcurrentLinkedQueue<>();

    /** Timers that fired: operator, domain, key, namespace, timestamp. */
    final Queue<Map<String, Object>> fired = new ConcurrentLinkedQueue<>();

    /** Subtasks that have fired all event-time timers. */
    final Queue<String> finished = new ConcurrentLinkedQueue<>();

    /** Records that reached the end of a job. */
    final Queue<Object> records = new ConcurrentLinkedQueue<>();

    /** Set by the main thread: operators shall advance the watermark to its end. */
    volatile boolean fire;

    static Board of(String run) {
        return BOARDS.computeIfAbsent(run, r -> new Board());
    }

    static void forget(String run) {
        BOARDS.remove(run);
    }
}
