import java.io.DataInputStream;
import java.io.IOException;
import java.util.concurrent.LinkedBlockingQueue;
import tlc2.TLC;
import util.SimpleFilenameToStream;

/**
 * The model checker for one run after another, which spares all but the first the start of a Java.
 *
 * <p>On standard input come runs: a count, then so many strings, each as writeUTF has them. The
 * first string is the modules' search path, the others are the model checker's arguments. What it
 * prints goes to standard output as ever; after it comes a line "@!@!@ENDED stays", or "leaves" if
 * too much memory is still taken for another run. When standard input ends, the process ends,
 * whatever it does; with the argument "once" after the runs that it has read.
 */
public final class TlcServer {
    private static final String[] END = {};

    public static void main(String[] arguments) throws Exception {
        Statics statics = new Statics();
        LinkedBlockingQueue<String[]> runs = new LinkedBlockingQueue<>();
        Thread reader = new Thread(() -> read(runs, arguments.length > 0));
        reader.setDaemon(true);
        reader.start();
        boolean stays = true;
        for (String[] run = runs.take(); stays && run != END; run = runs.take()) {
            String[] words = run;
            Thread thread = new Thread(() -> check(words)); // with its own thread locals
            thread.start();
            thread.join();
            statics.restore();
            stays = hasRoom();
            System.out.println("@!@!@ENDED " + (stays ? "stays" : "leaves"));
            System.out.flush();
        }
        Runtime.getRuntime().halt(0); // shutdown hooks are those of runs long gone
    }

    private static void read(LinkedBlockingQueue<String[]> runs, boolean once) {
        try (DataInputStream input = new DataInputStream(System.in)) {
            while (true) {
                String[] words = new String[input.readUnsignedShort()];
                for (int at = 0; at < words.length; at++) {
                    words[at] = input.readUTF();
                }
                runs.add(words);
            }
        } catch (IOException ended) {
            if (once) {
                runs.add(END);
            } else {
                Runtime.getRuntime().halt(0);
            }
        }
    }

    /** Whether the next run has three quarters of the heap. */
    private static boolean hasRoom() {
        Runtime java = Runtime.getRuntime();
        long most = java.maxMemory() / 4;
        if (java.totalMemory() - java.freeMemory() > most) {
            System.gc();
        }
        return java.totalMemory() - java.freeMemory() <= most;
    }

    private static void check(String[] words) {
        System.setProperty("TLA-Library", words[0]);
        String[] arguments = new String[words.length - 1];
        System.arraycopy(words, 1, arguments, 0, arguments.length);
        try {
            TLC tlc = new TLC();
            if (tlc.handleParameters(arguments)) {
                tlc.setResolver(new SimpleFilenameToStream());
                tlc.process();
            }
        } catch (Throwable problem) {
            problem.printStackTrace(System.out);
        }
    }
}
