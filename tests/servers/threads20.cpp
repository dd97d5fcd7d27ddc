// SPDX-License-Identifier: MIT
//
// The threads of C++20: jthread and stop_token, latch, barrier, semaphore,
// condition_variable_any, futures, thread_local, shared_mutex, call_once.
// Prints what must not depend on the threads package.
#include <atomic>
#include <barrier>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <future>
#include <latch>
#include <mutex>
#include <numeric>
#include <queue>
#include <semaphore>
#include <shared_mutex>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

static void barriers()
{
	constexpr int nr = 16, rounds = 200;
	std::vector<long> cells(nr);
	long total = 0;
	std::barrier sync(nr, [&]() noexcept {
		total += std::accumulate(cells.begin(), cells.end(), 0L);
	});
	std::vector<std::jthread> threads;

	for (int i = 0; i < nr; i++)
		threads.emplace_back([&, i] {
			for (int r = 0; r < rounds; r++) {
				cells[i] = r;
				sync.arrive_and_wait();
			}
		});
	threads.clear();
	std::printf("barrier %ld\n", total);
}

static void latches()
{
	std::latch ready(50), go(1);
	std::atomic<int> sum = 0;
	std::vector<std::jthread> threads;

	for (int i = 0; i < 50; i++)
		threads.emplace_back([&, i] {
			ready.count_down();
			go.wait();
			sum += i;
		});
	ready.wait();
	int before = sum;
	go.count_down();
	threads.clear();
	std::printf("latch %d %d\n", before, sum.load());
}

static void stop_tokens()
{
	std::mutex lock;
	std::condition_variable_any changed;
	std::atomic<int> stopped = 0, called = 0;
	std::vector<std::jthread> threads;

	for (int i = 0; i < 20; i++)
		threads.emplace_back([&](std::stop_token token) {
			std::stop_callback callback(token, [&] { called++; });
			std::unique_lock held(lock);
			changed.wait(held, token, [] { return false; });
			stopped++;
		});
	std::this_thread::sleep_for(20ms);
	threads.clear(); // asks each to stop, and joins it
	// How many were called depends on who is faster: one that is woken by
	// the wait's own callback takes the other one away.
	std::printf("stop %d %d\n", stopped.load(), called.load() <= 20);
}

static void queues()
{
	std::counting_semaphore<64> room(64), filled(0);
	std::mutex lock;
	std::queue<int> queue;
	std::atomic<long> sum = 0;
	std::vector<std::jthread> threads;

	for (int p = 0; p < 4; p++)
		threads.emplace_back([&] {
			for (int i = 0; i < 5000; i++) {
				room.acquire();
				{
					std::lock_guard held(lock);
					queue.push(i);
				}
				filled.release();
			}
		});
	for (int c = 0; c < 4; c++)
		threads.emplace_back([&] {
			for (int i = 0; i < 5000; i++) {
				filled.acquire();
				int value;
				{
					std::lock_guard held(lock);
					value = queue.front();
					queue.pop();
				}
				room.release();
				sum += value;
			}
		});
	threads.clear();
	std::printf("queue %ld\n", sum.load());
}

static thread_local std::string own = "new";
static std::atomic<int> destroyed = 0;

struct Counted {
	int value = 0;
	~Counted() { destroyed++; }
};
static thread_local Counted counted;

static void locals()
{
	std::atomic<int> wrong = 0;

	for (int round = 0; round < 3; round++) {
		std::vector<std::jthread> threads;

		for (int i = 0; i < 30; i++)
			threads.emplace_back([&, i] {
				// A thread that is used again starts afresh.
				if (own != "new" || counted.value)
					wrong++;
				own = std::to_string(i);
				counted.value = i + 1;
				std::this_thread::yield();
				if (own != std::to_string(i) || counted.value != i + 1)
					wrong++;
			});
	}
	std::printf("thread_local %d %d\n", wrong.load(), destroyed.load());
}

static void futures()
{
	std::vector<std::future<int>> results;
	long sum = 0;
	int thrown = 0;

	for (int i = 0; i < 40; i++)
		results.push_back(std::async(std::launch::async, [i] {
			std::this_thread::sleep_for(1ms);
			if (i % 10 == 3)
				throw std::runtime_error("three");
			return i;
		}));
	for (auto &result : results) {
		try {
			sum += result.get();
		} catch (const std::runtime_error &error) {
			thrown++;
		}
	}
	std::printf("async %ld %d\n", sum, thrown);
}

static void shared()
{
	std::shared_timed_mutex lock;
	std::once_flag once;
	std::atomic<int> made = 0, late = 0;
	long value = 0, wrong = 0;
	std::vector<std::jthread> threads;

	for (int i = 0; i < 12; i++)
		threads.emplace_back([&, i] {
			std::call_once(once, [&] { made++; });
			for (int r = 0; r < 500; r++) {
				if (i % 4 == 0) {
					std::unique_lock held(lock);
					value += 2;
				} else {
					std::shared_lock held(lock);
					wrong += value % 2;
				}
			}
		});
	threads.clear();
	std::unique_lock held(lock);
	std::jthread([&] {
		if (!lock.try_lock_for(10ms))
			late++;
	}).join();
	std::printf("shared %d %ld %ld %d\n", made.load(), value, wrong, late.load());
}

static void waits()
{
	std::atomic<int> step = 0;
	std::jthread other([&] {
		for (int i = 0; i < 1000; i++) {
			step.wait(2 * i);
			step++;
			step.notify_one();
		}
	});

	for (int i = 0; i < 1000; i++) {
		step++;
		step.notify_one();
		step.wait(2 * i + 1);
	}
	other.join();
	std::printf("atomic wait %d\n", step.load());
}

int main()
{
	barriers();
	latches();
	stop_tokens();
	queues();
	locals();
	futures();
	shared();
	waits();
	return 0;
}
