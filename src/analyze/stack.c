/* See stack.h. */
#include "analyze/stack.h"

#include <stdlib.h>

int fc_stack_init(struct fc_stack *stack, struct fc_tree *tree)
{
	*stack = (struct fc_stack){.tree = tree, .request_count = tree->trace->request_count};
	stack->runs = calloc((size_t)stack->request_count + 1, sizeof(*stack->runs));
	return stack->runs != NULL ? 0 : FC_ENOMEM;
}

void fc_stack_deinit(struct fc_stack *stack)
{
	free(stack->runs);
	free(stack->pieces);
	*stack = (struct fc_stack){0};
}

/* Adds to the run of a request. Numbers wrap around, sums do not. */
static void add_to_run(struct fc_stack *stack, uint32_t request, uint64_t difference)
{
	for (uint64_t at = request + 1ull; at <= stack->request_count; at += at & -at)
		stack->runs[at] += difference;
}

/* Blocks in the runs of requests 0 to `request`. */
static uint64_t runs_up_to(const struct fc_stack *stack, uint32_t request)
{
	uint64_t sum = 0;
	for (uint64_t at = request + 1ull; at > 0; at -= at & -at)
		sum += stack->runs[at];
	return sum;
}

static int add_piece(struct fc_stack *stack, uint32_t last_request)
{
	if (stack->piece_count == stack->piece_capacity) {
		uint64_t capacity = stack->piece_capacity == 0 ? 64 : stack->piece_capacity * 2;
		struct fc_stack_piece *pieces = realloc(stack->pieces, capacity * sizeof(*pieces));
		if (pieces == NULL)
			return FC_ENOMEM;
		stack->pieces = pieces;
		stack->piece_capacity = capacity;
	}
	stack->pieces[stack->piece_count++] = (struct fc_stack_piece){
		.last_request = last_request, .above = stack->block_count - runs_up_to(stack, last_request)};
	return 0;
}

/* Takes one node of the path, from the tail to the head; `is_listed` says that it belongs to the list. */
static int take_node(struct fc_stack *stack, uint32_t request, struct fc_tree_node *node, bool is_listed)
{
	uint32_t last = node->last_request;
	stack->path_count += node->length;
	if (last != FC_TRACE_NONE) {
		if ((stack->piece_count == 0 || stack->pieces[stack->piece_count - 1].last_request != last) &&
		    add_piece(stack, last) != 0)
			return FC_ENOMEM;
		struct fc_stack_piece *piece = &stack->pieces[stack->piece_count - 1];
		piece->move_count += node->length;
		piece->list_count += is_listed ? node->length : 0;
		stack->list_stored += is_listed ? node->length : 0;
	}
	stack->list_known += is_listed && node->list_count > 0 ? node->length : 0;
	node->list_count += is_listed;
	node->last_request = request;
	return 0;
}

int fc_stack_take(struct fc_stack *stack, uint32_t request, uint32_t end)
{
	struct fc_tree_node *nodes = stack->tree->nodes;
	uint32_t list_end = stack->tree->ends[request];
	bool is_listed = false;
	stack->piece_count = stack->list_known = stack->list_stored = stack->path_count = 0;
	for (uint32_t node = end; node != FC_TREE_ROOT; node = nodes[node].parent) {
		is_listed |= node == list_end;
		if (take_node(stack, request, &nodes[node], is_listed) != 0)
			return FC_ENOMEM;
	}
	uint64_t moved = 0;
	for (uint64_t i = 0; i < stack->piece_count; i++) {
		add_to_run(stack, stack->pieces[i].last_request, -(uint64_t)stack->pieces[i].move_count);
		moved += stack->pieces[i].move_count;
	}
	add_to_run(stack, request, stack->path_count);
	stack->block_count += stack->path_count - moved;
	return 0;
}
