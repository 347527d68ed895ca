/* Is what is put in found in order, whatever is taken out or moved in between, and how deep does the tree become? */
#include "base/order.h"

#include "base/check.h"
#include "base/dies.h"
#include "base/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#define NODES 512u

static struct fc_order order;
static struct fc_order_node nodes[NODES];

static int empty(void **state)
{
	(void)state;
	order = (struct fc_order){.seed = 7};
	memset(nodes, 0, sizeof(nodes));
	return 0;
}

static uint64_t key_from(uint64_t key)
{
	const struct fc_order_node *node = fc_order_from(&order, key);
	return node == NULL ? 0 : node->key;
}

static void nodes_are_found_in_order(void **state)
{
	(void)state;
	static const uint64_t keys[] = {40, 10, 30, 60, 20, 50};
	assert_null(fc_order_from(&order, 1));
	for (unsigned i = 0; i < fc_array_len(keys); i++)
		fc_order_put(&order, &nodes[i], keys[i]);
	fc_order_check(&order);
	uint64_t key = 0;
	for (uint64_t wanted = 10; wanted <= 60; wanted += 10) {
		key = key_from(key + 1);
		assert_int_equal(key, wanted);
	}
	assert_int_equal(key_from(61), 0);
	assert_int_equal(key_from(30), 30);
	assert_int_equal(key_from(31), 40);
	assert_ptr_equal(fc_order_from(&order, 31), &nodes[0]);
}

static void a_node_moves_and_leaves(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 4; i++)
		fc_order_put(&order, &nodes[i], 10 * (i + 1));
	fc_order_put(&order, &nodes[0], 35);
	assert_int_equal(key_from(1), 20);
	assert_ptr_equal(fc_order_from(&order, 31), &nodes[0]);
	fc_order_put(&order, &nodes[2], 0);
	fc_order_put(&order, &nodes[2], 0);
	assert_int_equal(nodes[2].key, 0);
	assert_int_equal(order.count, 3);
	assert_int_equal(key_from(21), 35);
	fc_order_put(&order, &nodes[3], UINT64_MAX);
	assert_int_equal(key_from(36), UINT64_MAX);
	fc_order_check(&order);
}

/* Against an array of what is in: every answer is looked for there too. */
static void any_sequence_keeps_it_in_order(void **state)
{
	(void)state;
	struct fc_random random;
	fc_random_init(&random, 5);
	for (unsigned step = 0; step < 20000; step++) {
		unsigned at = (unsigned)fc_random_below(&random, NODES);
		uint64_t key = fc_random_below(&random, 3) == 0 ? 0 : (uint64_t)at + NODES * (step + 1);
		fc_order_put(&order, &nodes[at], key);
		uint64_t from = 1 + fc_random_below(&random, NODES * 20000ull), nearest = 0;
		for (unsigned i = 0; i < NODES; i++)
			if (nodes[i].key >= from && (nearest == 0 || nodes[i].key < nearest))
				nearest = nodes[i].key;
		assert_int_equal(key_from(from), nearest);
		if (step % 100 == 0)
			fc_order_check(&order);
	}
}

static unsigned depth_of(const struct fc_order_node *node)
{
	if (node == NULL)
		return 0;
	unsigned smaller = depth_of(node->smaller), larger = depth_of(node->larger);
	return 1 + (smaller > larger ? smaller : larger);
}

/* Keys that only grow, as those of use do: a tree that is not kept in balance would be a list of 512. */
static void growing_keys_make_no_list(void **state)
{
	(void)state;
	for (unsigned i = 0; i < NODES; i++)
		fc_order_put(&order, &nodes[i], i + 1);
	assert_in_range(depth_of(order.root), 9, 30);
	for (unsigned round = 1; round < 8; round++)
		for (unsigned i = 0; i < NODES; i++)
			fc_order_put(&order, &nodes[i], round * NODES + i + 1);
	assert_in_range(depth_of(order.root), 9, 30);
	fc_order_check(&order);
}

static void check(void *context)
{
	fc_order_check(context);
}

static void the_check_finds_what_is_not_in_order(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 8; i++)
		fc_order_put(&order, &nodes[i], 10 * (i + 1));
	assert_false(dies(check, &order));
	order.count++;
	assert_true(dies(check, &order));
	order.count--;
	nodes[3].key = 75;
	assert_true(dies(check, &order));
	nodes[3].key = 40;
	order.seed++;
	assert_true(dies(check, &order));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(nodes_are_found_in_order, empty),
		cmocka_unit_test_setup(a_node_moves_and_leaves, empty),
		cmocka_unit_test_setup(any_sequence_keeps_it_in_order, empty),
		cmocka_unit_test_setup(growing_keys_make_no_list, empty),
		cmocka_unit_test_setup(the_check_finds_what_is_not_in_order, empty),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
