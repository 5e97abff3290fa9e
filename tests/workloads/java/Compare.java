// Sorts strings without end: the comparison is compiled into the methods that sort, and pushes a word there.
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

public class Compare {
    public static void main(String[] arguments) {
        List<String> words = new ArrayList<>();
        for (int i = 0; i < 20000; i++)
            words.add(Integer.toString(i * 7919 % 5000, 36));
        System.out.println("ready");
        while (true) Collections.sort(new ArrayList<>(words));
    }
}
