# Java: enough garbage, sorting and compressing to keep the virtual machine's own threads busy, too.
prepare() {
    cat > Work.java <<'END'
import java.util.*;
import java.util.zip.*;

public class Work {
    static int depth(int n) { return n == 0 ? 0 : 1 + depth(n - 1); }

    public static void main(String[] arguments) throws Exception {
        long sum = 0;
        List<byte[]> kept = new ArrayList<>();
        for (int round = 0; ; round++) {
            Map<String, List<Integer>> map = new HashMap<>();
            for (int i = 0; i < 20000; i++)
                map.computeIfAbsent(Integer.toString(i * 7919 % 5000, 36), key -> new ArrayList<>()).add(i);
            List<String> keys = new ArrayList<>(map.keySet());
            Collections.sort(keys);
            byte[] bytes = String.join(" ", keys).getBytes();
            Deflater deflater = new Deflater();
            deflater.setInput(bytes);
            deflater.finish();
            sum += deflater.deflate(new byte[bytes.length]) + depth(500);
            deflater.end();
            kept.add(new byte[100000]);
            if (kept.size() > 300) kept.clear();
            if (sum == 1) System.out.println(sum);
        }
    }
}
END
    javac Work.java
}
# The virtual machine is asked for frame pointers in the code that it compiles only where that code is looked at.
work() { exec java -Xmx200m -cp . Work; }
