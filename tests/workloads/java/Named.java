/** Burns in threads, of whose names the kernel has only the beginning; one is renamed by another. Until it is killed. */
public class Named {
    static volatile int sink;

    static void burn() {
        while (true) {
            int sum = 0;
            for (int turn = 0; turn < 3000000; turn++) {
                sum = sum * 31 + turn;
            }
            sink = sum;
        }
    }

    static Thread start(String name) {
        Thread thread = new Thread(Named::burn, name);
        thread.start();
        return thread;
    }

    public static void main(String[] arguments) throws InterruptedException {
        start("short");
        start("http-nio-8080-exec-1");
        start("http-nio-8080-exec-2");
        start("Überträger \u6f22\u5b57 7");
        start("a".repeat(400));
        Thread renamed = start("name-at-the-beginning");
        while (sink == 0) {
            Thread.sleep(1);
        }
        Thread.sleep(100);
        renamed.setName("name-at-the-end");
        System.out.println("ready");
    }
}
