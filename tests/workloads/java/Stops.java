import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Proxy;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Random;
import java.util.function.IntSupplier;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/**
 * Stops at 60 places that chance chooses, and burns there; the thread's own stack trace says what they are.
 *
 * First each place is visited once, to say its frames as a `chain METHOD;METHOD;…` line; then all of them again and again, until it
 * is killed: interpreted at first, then compiled, with some compiled into others. Classes that are made at run time are left out.
 */
public class Stops {
    static final int STOPS = 60;
    static final int TURNS = 300000;

    static boolean saying;

    interface Way {
        int go(Way[] ways);
    }

    static int stop() {
        if (saying) {
            say();
            return 0;
        }
        int sum = 0;
        for (int turn = 0; turn < TURNS; turn++) {
            sum = sum * 31 + turn;
        }
        return sum;
    }

    static void say() {
        StackTraceElement[] frames = Thread.currentThread().getStackTrace();
        Stream<String> names = IntStream.range(2, frames.length)
            .mapToObj(place -> frames[frames.length + 1 - place])
            .filter(frame -> frame.getClassName().startsWith("Stops") && !frame.getClassName().contains("$$"))
            .map(frame -> frame.getClassName() + "." + frame.getMethodName());
        System.out.println("chain " + names.collect(Collectors.joining(";")));
    }

    static int go(Way[] ways) {
        if (ways.length == 0) {
            return stop();
        }
        return ways[0].go(Arrays.copyOfRange(ways, 1, ways.length));
    }

    static class Base {
        final Way[] ways;

        Base(Way[] ways) {
            this.ways = ways;
        }

        int inherited() {
            return Stops.go(ways);
        }
    }

    static class Holder extends Base implements Comparable<Holder>, IntSupplier {
        Holder(Way[] ways) {
            super(ways);
        }

        @Override
        int inherited() {
            return super.inherited();
        }

        @Override
        public int getAsInt() {
            return Stops.go(ways);
        }

        @Override
        public int hashCode() {
            return Stops.go(ways);
        }

        @Override
        public boolean equals(Object other) {
            return this == other;
        }

        @Override
        public String toString() {
            return String.valueOf(Stops.go(ways));
        }

        @Override
        public int compareTo(Holder other) {
            return Stops.go(ways) & 1;
        }

        synchronized int locked() {
            return Stops.go(ways);
        }
    }

    static class Burning {
        final int value;

        Burning(Way[] ways) {
            value = Stops.go(ways);
        }
    }

    static int byCall(Way[] ways) {
        return go(ways);
    }

    static int byVirtual(Way[] ways) {
        return new Holder(ways).inherited();
    }

    static int byInterface(Way[] ways) {
        IntSupplier supplier = new Holder(ways);
        return supplier.getAsInt();
    }

    static int byNew(Way[] ways) {
        return new Burning(ways).value;
    }

    static int byLambda(Way[] ways) {
        IntSupplier supplier = () -> go(ways);
        return supplier.getAsInt();
    }

    static int byReference(Way[] ways) {
        Way way = Stops::byCall;
        return way.go(ways);
    }

    static int bySort(Way[] ways) {
        Integer[] numbers = {2, 1};
        Arrays.sort(numbers, (one, other) -> go(ways) & 1);
        return numbers[0];
    }

    static int byCompared(Way[] ways) {
        Holder[] holders = {new Holder(ways), new Holder(ways)};
        Arrays.sort(holders);
        return holders.length;
    }

    static int byStream(Way[] ways) {
        return IntStream.range(0, 1).map(number -> go(ways)).sum();
    }

    static int byReflection(Way[] ways) {
        try {
            return (Integer) Stops.class.getDeclaredMethod("byCall", Way[].class).invoke(null, (Object) ways);
        } catch (ReflectiveOperationException exception) {
            throw new AssertionError(exception);
        }
    }

    static int byProxy(Way[] ways) {
        InvocationHandler handler = (proxy, method, arguments) -> go(ways);
        Class<?>[] types = {IntSupplier.class};
        return ((IntSupplier) Proxy.newProxyInstance(Stops.class.getClassLoader(), types, handler)).getAsInt();
    }

    static int byCatch(Way[] ways) {
        try {
            throw new IllegalStateException();
        } catch (IllegalStateException exception) {
            return go(ways);
        }
    }

    static int byFinally(Way[] ways) {
        try {
            return 1;
        } finally {
            go(ways);
        }
    }

    static int byLock(Way[] ways) {
        return new Holder(ways).locked();
    }

    static int byHash(Way[] ways) {
        HashMap<Holder, Integer> map = new HashMap<>();
        map.put(new Holder(ways), 1);
        return map.size();
    }

    static int byText(Way[] ways) {
        return String.valueOf(new Holder(ways)).length();
    }

    static int byRecursion(Way[] ways) {
        return descend(5, ways);
    }

    static int descend(int left, Way[] ways) {
        return left == 0 ? go(ways) : descend(left - 1, ways);
    }

    static final Way[] ALL = {
        Stops::byCall, Stops::byVirtual, Stops::byInterface, Stops::byNew, Stops::byLambda, Stops::byReference, Stops::bySort,
        Stops::byCompared, Stops::byStream, Stops::byReflection, Stops::byProxy, Stops::byCatch, Stops::byFinally, Stops::byLock,
        Stops::byHash, Stops::byText, Stops::byRecursion,
    };

    static void visit(Way[][] places) {
        for (Way[] ways : places) {
            go(ways);
        }
    }

    public static void main(String[] arguments) {
        Random random = new Random(7);
        Way[][] places = new Way[STOPS][];
        for (int place = 0; place < STOPS; place++) {
            places[place] = new Way[random.nextInt(12)];
            for (int way = 0; way < places[place].length; way++) {
                places[place][way] = ALL[random.nextInt(ALL.length)];
            }
        }
        System.out.println("ready");
        saying = true;
        visit(places);
        saying = false;
        while (true) {
            visit(places);
        }
    }
}
