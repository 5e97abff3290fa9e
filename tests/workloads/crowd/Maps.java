import java.util.HashMap;
import java.util.Map;

/** Counts in maps, every few milliseconds. */
class Maps {
    static long count(int turns) {
        Map<Integer, Long> counts = new HashMap<>();
        for (int i = 0; i < turns; i++) {
            counts.merge(i % 997, (long) i, Long::sum);
        }
        return counts.values().stream().mapToLong(Long::longValue).sum();
    }

    public static void main(String[] arguments) throws InterruptedException {
        while (true) {
            count(20000);
            Thread.sleep(5);
        }
    }
}
