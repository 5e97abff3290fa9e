/** Burns in virtual threads, at once and after they have slept. Until it is killed. */
public class Virtual {
    static int burn() {
        int sum = 0;
        for (int turn = 0; turn < 3000000; turn++) {
            sum = sum * 31 + turn;
        }
        return sum;
    }

    static int work(int left) {
        return left == 0 ? burn() : work(left - 1) + 1;
    }

    static void live() {
        while (true) {
            work(5);
            try {
                Thread.sleep(1);
            } catch (InterruptedException exception) {
                return;
            }
        }
    }

    public static void main(String[] arguments) throws InterruptedException {
        System.out.println("ready");
        Thread.startVirtualThread(Virtual::live);
        Thread.startVirtualThread(Virtual::live).join();
    }
}
