// SPDX-License-Identifier: MIT
//
// Threads of OpenJDK: an HTTP server with a pool, garbage collection under
// load, locks, interrupts, faults. Prints what must not depend on the threads package.
import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.*;
import java.util.concurrent.atomic.AtomicLong;

public class Threads {
    static void http() throws Exception {
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 100);
        ExecutorService pool = Executors.newFixedThreadPool(32);
        server.setExecutor(pool);
        server.createContext("/", exchange -> {
            byte[] body = ("hello " + exchange.getRequestURI().getPath()).getBytes();
            exchange.sendResponseHeaders(200, body.length);
            exchange.getResponseBody().write(body);
            exchange.close();
        });
        server.start();
        int port = server.getAddress().getPort();
        HttpClient client = HttpClient.newHttpClient();
        List<CompletableFuture<String>> answers = new ArrayList<>();
        for (int i = 0; i < 400; i++)
            answers.add(client.sendAsync(HttpRequest.newBuilder(
                    URI.create("http://127.0.0.1:" + port + "/" + i)).build(),
                    HttpResponse.BodyHandlers.ofString()).thenApply(HttpResponse::body));
        int good = 0;
        for (int i = 0; i < 400; i++)
            if (answers.get(i).get(30, TimeUnit.SECONDS).equals("hello /" + i))
                good++;
        server.stop(0);
        pool.shutdown();
        System.out.println("http " + good);
    }

    static void garbage() throws Exception {
        AtomicLong sum = new AtomicLong();
        List<Thread> threads = new ArrayList<>();
        for (int t = 0; t < 8; t++) {
            Thread thread = new Thread(() -> {
                List<byte[]> kept = new ArrayList<>();
                for (int i = 0; i < 3000; i++) {
                    kept.add(new byte[10_000]);
                    if (kept.size() > 100)
                        kept.clear();
                    sum.addAndGet(kept.size());
                }
            });
            threads.add(thread);
            thread.start();
        }
        for (int i = 0; i < 5; i++)
            System.gc();
        for (Thread thread : threads)
            thread.join();
        System.out.println("garbage " + sum.get());
    }

    static void interrupts() throws Exception {
        AtomicLong interrupted = new AtomicLong();
        List<Thread> threads = new ArrayList<>();
        for (int t = 0; t < 20; t++) {
            Thread thread = new Thread(() -> {
                try {
                    Thread.sleep(60_000);
                } catch (InterruptedException e) {
                    interrupted.incrementAndGet();
                }
            });
            threads.add(thread);
            thread.start();
        }
        Thread.sleep(50);
        for (Thread thread : threads)
            thread.interrupt();
        for (Thread thread : threads)
            thread.join();
        System.out.println("interrupts " + interrupted.get());
    }

    static void locks() throws Exception {
        Object lock = new Object();
        long[] count = new long[1];
        CyclicBarrier barrier = new CyclicBarrier(10);
        ExecutorService pool = Executors.newCachedThreadPool();
        List<Future<?>> all = new ArrayList<>();
        for (int t = 0; t < 10; t++)
            all.add(pool.submit(() -> {
                for (int i = 0; i < 200; i++) {
                    barrier.await();
                    synchronized (lock) {
                        count[0]++;
                        lock.notifyAll();
                    }
                }
                return null;
            }));
        for (Future<?> one : all)
            one.get(60, TimeUnit.SECONDS);
        pool.shutdown();
        System.out.println("locks " + count[0]);
    }

    static class Node {
        int value;
    }

    static int deep(int n) {
        return deep(n + 1) + 1;
    }

    /* Compiled code finds out by signals, wherever it runs. */
    static void faults() throws Exception {
        AtomicLong pointers = new AtomicLong(), stacks = new AtomicLong();
        List<Thread> threads = new ArrayList<>();
        for (int t = 0; t < 8; t++) {
            Thread thread = new Thread(() -> {
                Node node = new Node();
                for (int i = 0; i < 20_000; i++) {
                    node.value += i;
                    Node other = i % 7 == 0 && i > 15_000 ? null : node;
                    try {
                        other.value++;
                        if (i % 100 == 0)
                            Thread.sleep(0, 1000);
                    } catch (NullPointerException e) {
                        pointers.incrementAndGet();
                    } catch (InterruptedException e) {
                        return;
                    }
                }
                for (int i = 0; i < 5; i++) {
                    try {
                        Thread.sleep(1);
                        deep(0);
                    } catch (StackOverflowError e) {
                        stacks.incrementAndGet();
                    } catch (InterruptedException e) {
                        return;
                    }
                }
            });
            threads.add(thread);
            thread.start();
        }
        for (Thread thread : threads)
            thread.join();
        System.out.println("faults " + pointers.get() + " " + stacks.get());
    }

    public static void main(String[] args) throws Exception {
        http();
        garbage();
        interrupts();
        locks();
        faults();
    }
}
