/* Does the heap hand out its nodes in order, whatever is pushed, taken out or changed in between? */
#include "base/heap.h"

#include "base/dies.h"
#include "base/random.h"
#include "base/tracked_alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

struct job {
	struct fc_heap_node node;
	uint64_t rank;
	uint64_t arrival;
};

static struct tracked_alloc tracked;

static const struct job *job_of(const struct fc_heap_node *node)
{
	return fc_container_of(node, const struct job, node);
}

/* `context` counts the calls. */
static bool job_before(const struct fc_heap_node *a, const struct fc_heap_node *b, void *context)
{
	const struct job *x = job_of(a);
	const struct job *y = job_of(b);
	++*(uint64_t *)context;
	return x->rank != y->rank ? x->rank < y->rank : x->arrival < y->arrival;
}

static uint64_t call_count;

static struct fc_heap make_heap(uint64_t capacity)
{
	struct fc_alloc alloc = tracked_alloc_interface(&tracked);
	struct fc_heap heap;
	assert_int_equal(fc_heap_init(&heap, &alloc, capacity, job_before, &call_count), 0);
	return heap;
}

static int no_memory_is_left(void **state)
{
	(void)state;
	uint64_t bytes = tracked.bytes;
	memset(&tracked, 0, sizeof(tracked));
	return bytes == 0 ? 0 : -1;
}

static void push(struct fc_heap *heap, struct job *job, uint64_t rank, uint64_t arrival)
{
	job->rank = rank;
	job->arrival = arrival;
	assert_int_equal(fc_heap_push(heap, &job->node), 0);
}

static void nodes_come_out_in_order_and_equals_by_arrival(void **state)
{
	(void)state;
	static const uint64_t ranks[] = {5, 3, 9, 3, 1, 9, 5};
	static const uint64_t order[] = {4, 1, 3, 0, 6, 2, 5};
	struct job jobs[7] = {0};
	struct fc_heap heap = make_heap(7);
	for (uint64_t i = 0; i < 7; i++)
		push(&heap, &jobs[i], ranks[i], i);
	for (uint64_t i = 0; i < 7; i++) {
		assert_ptr_equal(fc_heap_peek(&heap), &jobs[order[i]].node);
		assert_ptr_equal(fc_heap_pop(&heap), &jobs[order[i]].node);
		assert_false(fc_heap_contains(&heap, &jobs[order[i]].node));
	}
	assert_null(fc_heap_pop(&heap));
	assert_null(fc_heap_peek(&heap));
	fc_heap_deinit(&heap);
}

static void a_full_heap_refuses_and_loses_nothing(void **state)
{
	(void)state;
	struct job jobs[3] = {0};
	struct fc_heap heap = make_heap(2);
	push(&heap, &jobs[0], 1, 0);
	push(&heap, &jobs[1], 2, 1);
	assert_int_equal(fc_heap_push(&heap, &jobs[2].node), FC_ELIMIT);
	assert_int_equal(fc_heap_count(&heap), 2);
	assert_int_equal(jobs[2].node.place, 0);
	assert_ptr_equal(fc_heap_pop(&heap), &jobs[0].node);
	assert_int_equal(fc_heap_push(&heap, &jobs[2].node), 0);
	fc_heap_deinit(&heap);
}

static void what_is_in_no_heap_can_be_removed(void **state)
{
	(void)state;
	struct job jobs[2] = {0};
	struct fc_heap heap = make_heap(2);
	push(&heap, &jobs[0], 1, 0);
	fc_heap_remove(&heap, &jobs[1].node);
	fc_heap_remove(&heap, &jobs[0].node);
	fc_heap_remove(&heap, &jobs[0].node);
	assert_int_equal(fc_heap_count(&heap), 0);
	fc_heap_deinit(&heap);
}

static void impossible_sizes_and_lack_of_memory_are_told(void **state)
{
	(void)state;
	struct fc_alloc alloc = tracked_alloc_interface(&tracked);
	struct fc_heap heap;
	assert_int_equal(fc_heap_init(&heap, &alloc, 0, job_before, NULL), FC_EINVAL);
	assert_int_equal(fc_heap_init(&heap, &alloc, UINT64_MAX / 4, job_before, NULL), FC_EINVAL);
	tracked.fail_at = 1;
	assert_int_equal(fc_heap_init(&heap, &alloc, 8, job_before, NULL), FC_ENOMEM);
	fc_heap_deinit(&heap);
}

struct misuse {
	struct fc_heap *heap;
	struct fc_heap_node *node;
};
static void push_misused(void *context)
{
	struct misuse *misuse = context;
	(void)!fc_heap_push(misuse->heap, misuse->node);
}
static void update_misused(void *context)
{
	struct misuse *misuse = context;
	fc_heap_update(misuse->heap, misuse->node);
}
static void remove_misused(void *context)
{
	struct misuse *misuse = context;
	fc_heap_remove(misuse->heap, misuse->node);
}

static void misuse_is_stopped(void **state)
{
	(void)state;
	struct job jobs[2] = {0};
	struct fc_heap heap = make_heap(4);
	struct fc_heap other = make_heap(4);
	push(&heap, &jobs[0], 1, 0);
	assert_true(dies(push_misused, &(struct misuse){&heap, &jobs[0].node}));
	assert_true(dies(push_misused, &(struct misuse){&other, &jobs[0].node}));
	assert_true(dies(remove_misused, &(struct misuse){&other, &jobs[0].node}));
	assert_true(dies(update_misused, &(struct misuse){&heap, &jobs[1].node}));
	fc_heap_deinit(&other);
	fc_heap_deinit(&heap);
}

/* ---- against a plain array ----------------------------------------------------------------------------------------
 */

enum { job_count = 200 };

static struct fc_heap_node *model_first(struct job *jobs)
{
	struct job *first = NULL;
	for (size_t i = 0; i < job_count; i++) {
		if (jobs[i].node.place == 0)
			continue;
		if (first == NULL || jobs[i].rank < first->rank ||
		    (jobs[i].rank == first->rank && jobs[i].arrival < first->arrival))
			first = &jobs[i];
	}
	return first == NULL ? NULL : &first->node;
}

static void step(struct fc_heap *heap, struct job *jobs, struct fc_random *random, uint64_t arrival)
{
	struct job *job = &jobs[fc_random_below(random, job_count)];
	uint64_t rank = fc_random_below(random, 50);
	if (job->node.place == 0) {
		push(heap, job, rank, arrival);
	} else if (fc_random_below(random, 2) == 0) {
		job->rank = rank;
		fc_heap_update(heap, &job->node);
	} else {
		fc_heap_remove(heap, &job->node);
	}
	if (fc_random_below(random, 10) == 0)
		fc_heap_pop(heap);
	if (fc_random_below(random, 100) != 0)
		return;
	for (size_t i = 0; i < job_count; i++)
		jobs[i].rank = fc_random_below(random, 50);
	fc_heap_reorder(heap);
}

static void random_changes_keep_the_order(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct job jobs[job_count] = {0};
		struct fc_heap heap = make_heap(job_count);
		struct fc_random random;
		fc_random_init(&random, seed);
		for (uint64_t i = 0; i < 3000; i++) {
			step(&heap, jobs, &random, i);
			assert_ptr_equal(fc_heap_peek(&heap), model_first(jobs));
		}
		while (fc_heap_count(&heap) > 0) {
			struct fc_heap_node *first = model_first(jobs);
			assert_ptr_equal(fc_heap_pop(&heap), first);
		}
		assert_null(model_first(jobs));
		fc_heap_deinit(&heap);
	}
}

static void operations_cost_a_logarithm(void **state)
{
	(void)state;
	enum { many = 4096 };
	static struct job jobs[many];
	memset(jobs, 0, sizeof(jobs));
	struct fc_heap heap = make_heap(many);
	call_count = 0;
	for (uint64_t i = 0; i < many; i++)
		push(&heap, &jobs[i], many - i, i);
	assert_true(call_count <= many * 12);
	call_count = 0;
	for (uint64_t i = 0; i < many; i++)
		fc_heap_pop(&heap);
	assert_true(call_count <= many * 26); /* two comparisons a level, twelve levels, and one to rise */
	fc_heap_deinit(&heap);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(nodes_come_out_in_order_and_equals_by_arrival, no_memory_is_left),
		cmocka_unit_test_teardown(a_full_heap_refuses_and_loses_nothing, no_memory_is_left),
		cmocka_unit_test_teardown(what_is_in_no_heap_can_be_removed, no_memory_is_left),
		cmocka_unit_test_teardown(impossible_sizes_and_lack_of_memory_are_told, no_memory_is_left),
		cmocka_unit_test_teardown(misuse_is_stopped, no_memory_is_left),
		cmocka_unit_test_teardown(random_changes_keep_the_order, no_memory_is_left),
		cmocka_unit_test_teardown(operations_cost_a_logarithm, no_memory_is_left),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
