#include "sim/memory.h"

#include "sim/fault.h"

#include <stdlib.h>
#include <string.h>

#define HEADER_BYTES 64u
#define PAGE_BYTES 4096u
#define FREED 0xdd /* what is read after it was freed is not what it was */
#define FREED_BYTES_MAX 4096u

struct block {
	struct fc_link link;
	uint64_t bytes;
	uint64_t header_bytes;
};

static void *take(struct fc_sim_memory *memory, uint64_t bytes, uint64_t alignment)
{
	uint64_t header_bytes = alignment < HEADER_BYTES ? HEADER_BYTES : alignment;
	uint64_t total = fc_align_up(header_bytes + bytes, alignment);
	uint8_t *base = aligned_alloc(alignment, total);
	fc_check(base != NULL);
	memset(base + header_bytes, 0, total - header_bytes);
	struct block *block = (struct block *)(void *)(base + header_bytes - HEADER_BYTES);
	*block = (struct block){.bytes = bytes, .header_bytes = header_bytes};
	fc_list_push(&memory->blocks, &block->link);
	memory->bytes += bytes;
	return base + header_bytes;
}

static struct block *block_of(void *memory)
{
	return (struct block *)(void *)((uint8_t *)memory - HEADER_BYTES);
}

static void drop(struct fc_sim_memory *memory, struct block *block)
{
	memory->bytes -= block->bytes;
	fc_list_remove(&block->link);
	memset((uint8_t *)block + HEADER_BYTES, FREED, fc_min_u64(block->bytes, FREED_BYTES_MAX));
	free((uint8_t *)block + HEADER_BYTES - block->header_bytes);
}

static void give_back(struct fc_sim_memory *memory, void *piece, uint64_t bytes)
{
	struct block *block = block_of(piece);
	if (block->bytes != bytes)
		fc_sim_broken(memory->notes, "memory: %llu bytes are freed as %llu", (unsigned long long)block->bytes,
			      (unsigned long long)bytes);
	drop(memory, block);
}

static void *sim_alloc(void *context, size_t bytes)
{
	struct fc_sim_memory *memory = context;
	if (fc_sim_happens(&memory->random, memory->fail_probability)) {
		memory->failed_count++;
		return NULL;
	}
	return take(memory, bytes, HEADER_BYTES);
}

static void sim_free(void *context, void *piece, size_t bytes)
{
	if (piece != NULL)
		give_back(context, piece, bytes);
}

void fc_sim_memory_init(struct fc_sim_memory *memory, struct fc_sim_notes *notes, uint64_t seed)
{
	*memory = (struct fc_sim_memory){.alloc = {sim_alloc, sim_free, memory}, .notes = notes};
	fc_list_init(&memory->blocks);
	fc_random_init(&memory->random, seed);
}

void fc_sim_memory_forget(struct fc_sim_memory *memory)
{
	while (!fc_list_is_empty(&memory->blocks))
		drop(memory, fc_container_of(memory->blocks.next, struct block, link));
}

void *fc_sim_pages_alloc(struct fc_sim_memory *memory, uint64_t bytes)
{
	return take(memory, bytes, PAGE_BYTES);
}

void fc_sim_pages_free(struct fc_sim_memory *memory, void *pages, uint64_t bytes)
{
	give_back(memory, pages, bytes);
}
