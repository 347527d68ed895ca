/* A doubly linked list whose links are embedded in the caller's structs. A list head is a link that points at itself.
 */
#ifndef FC_BASE_LIST_H
#define FC_BASE_LIST_H

#include "base/check.h"

struct fc_link {
	struct fc_link *next;
	struct fc_link *prev;
};

static inline void fc_list_init(struct fc_link *head)
{
	head->next = head->prev = head;
}
static inline bool fc_list_is_empty(const struct fc_link *head)
{
	return head->next == head;
}
static inline bool fc_link_is_linked(const struct fc_link *link)
{
	return link->next != NULL && link->next != link;
}

static inline void fc_list_insert_before(struct fc_link *place, struct fc_link *link)
{
	link->prev = place->prev;
	link->next = place;
	place->prev->next = link;
	place->prev = link;
}

static inline void fc_list_push(struct fc_link *head, struct fc_link *link)
{
	fc_list_insert_before(head, link);
}

/* Takes the link out of its list; a link that is in no list (zeroed or removed before) is left alone. */
static inline void fc_list_remove(struct fc_link *link)
{
	if (link->next == NULL)
		return;
	link->prev->next = link->next;
	link->next->prev = link->prev;
	link->next = link->prev = NULL;
}

static inline struct fc_link *fc_list_pop(struct fc_link *head)
{
	struct fc_link *first = head->next;
	if (first == head)
		return NULL;
	fc_list_remove(first);
	return first;
}

#define fc_list_for_each(link, head) for (struct fc_link *link = (head)->next; link != (head); link = link->next)
/* The body may remove `link`. */
#define fc_list_for_each_safe(link, head)                                                                              \
	for (struct fc_link *link = (head)->next, *link##_next = link->next; link != (head);                           \
	     link = link##_next, link##_next = link->next)

#endif
