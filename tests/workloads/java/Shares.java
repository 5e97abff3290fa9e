import java.lang.management.ManagementFactory;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.TreeMap;

/**
 * Two phases that take 70 and 30 percent of the program's time by construction, through methods, callbacks and calls that the
 * compiler may put into their callers: each round deals that many equal slots in a random order, so no sampling rate can march in
 * step. Until SIGTERM; then the measured truth as `truth METHOD NANOSECONDS` lines.
 */
public class Shares {
    static int burn(int turns) {
        int sum = 0;
        for (int turn = 0; turn < turns; turn++) {
            sum = sum * 31 + turn;
        }
        return sum;
    }

    static int step(int turns) {
        return burn(turns) + 1;
    }

    static int longPhase() {
        return step(400000);
    }

    static int shortPhase() {
        Integer[] numbers = {2, 1};
        Arrays.sort(numbers, (one, other) -> step(400000) & 1);
        return numbers[0];
    }

    static long measured(Runnable phase) {
        long before = ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
        phase.run();
        return ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime() - before;
    }

    public static void main(String[] arguments) {
        TreeMap<String, Long> spent = new TreeMap<>();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            synchronized (spent) {
                spent.forEach((phase, nanoseconds) -> System.out.println("truth Shares." + phase + " " + nanoseconds));
                System.out.flush();
            }
        }));
        List<Boolean> slots = Arrays.asList(true, true, true, true, true, true, true, false, false, false);
        System.out.println("ready");
        while (true) {
            Collections.shuffle(slots);
            for (boolean isLong : slots) {
                long took = measured(isLong ? Shares::longPhase : Shares::shortPhase);
                synchronized (spent) {
                    spent.merge(isLong ? "longPhase" : "shortPhase", took, Long::sum);
                }
            }
        }
    }
}
