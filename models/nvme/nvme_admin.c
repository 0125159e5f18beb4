/*
 * Admin commands of nvme.controller.
 *
 * Models: Create and Delete of I/O queues, Abort; others: nvme_identify.c, nvme_log.c,
 *   nvme_feature.c, nvme_event.c. Abort ends what has not begun, what waits for the media or for
 *   events, and what is found in its queue within the entries that were there when the Abort was
 *   executed; data on the link is not called back: the command ends when it has come or gone.
 * Does not model: firmware, format, namespace management, self-tests, directives, security,
 *   sanitize.
 * Timing: a command acts when it has been fetched; Delete of a submission queue is complete when
 *   the last of its commands is, an Abort when the command it aborts is.
 * Sources: NVM Express 1.3, section 5.
 */
#include <string.h>

#include "models/nvme/nvme_internal.h"

/* ---- Queues (5.3 to 5.6) --------------------------------------------------------------------- */

/* A queue that begins in the controller's memory buffer lies in it. */
static bool cmb_agrees(const struct nvme *nvme, uint64_t iova, uint64_t bytes)
{
    uint64_t offset = iova - cfg_bar_base(&nvme->function.cfg, NVME_CMB_BAR);
    return nvme->cmb == NULL || offset >= nvme_params(nvme)->cmb_bytes ||
           bytes <= nvme_params(nvme)->cmb_bytes - offset;
}

/* What both kinds are asked alike. */
static enum nvme_status check_create(struct nvme_command *command, bool exists, bool sizes,
                                     uint32_t entry_bytes)
{
    const struct nvme *nvme = command->nvme;
    const struct nvme_sqe *sqe = &command->sqe;
    uint32_t number = sqe->cdw10 & 0xffffu, entries = (sqe->cdw10 >> 16) + 1;
    if (number == 0 || number >= nvme->n_queues || exists)
        return nvme_wrong(command, NVME_SC_QUEUE_ID_INVALID, NVME_AT(cdw10, 0));
    if (entries < 2 || entries > nvme_params(nvme)->queue_entries)
        return nvme_wrong(command, NVME_SC_QUEUE_SIZE_INVALID, NVME_AT(cdw10, 16));
    if (!sizes) /* CC.IOSQES or CC.IOCQES */
        return nvme_wrong(command, NVME_SC_INVALID_FIELD, NVME_NOWHERE);
    if ((sqe->cdw11 & NVME_QUEUE_CONTIGUOUS) == 0)
        return nvme_wrong(command, NVME_SC_INVALID_FIELD, NVME_AT(cdw11, 0));
    if (sqe->prp1 % NVME_PAGE_BYTES != 0)
        return nvme_wrong(command, NVME_SC_PRP_OFFSET_INVALID, NVME_AT(prp1, 0));
    if (!cmb_agrees(nvme, sqe->prp1, (uint64_t)entries * entry_bytes))
        return nvme_wrong(command, NVME_SC_CMB_USE_INVALID, NVME_AT(prp1, 0));
    return NVME_SC_SUCCESS;
}

static enum nvme_status create_cq(struct nvme_command *command)
{
    struct nvme *nvme = command->nvme;
    const struct nvme_sqe *sqe = &command->sqe;
    uint32_t number = sqe->cdw10 & 0xffffu, vector = sqe->cdw11 >> 16;
    bool exists = number < nvme->n_queues && nvme->cq[number].there;
    bool sizes = NVME_CC_IOCQES_OF(nvme->cc) == NVME_CQE_LOG2;
    enum nvme_status status = check_create(command, exists, sizes, NVME_CQE_BYTES);
    if (status != NVME_SC_SUCCESS)
        return status;
    if (vector >= nvme->n_vectors)
        return nvme_wrong(command, NVME_SC_VECTOR_INVALID, NVME_AT(cdw11, 16));
    nvme_cq_create(nvme, (uint16_t)number, sqe->prp1, (sqe->cdw10 >> 16) + 1,
                   (sqe->cdw11 & NVME_CQ_INTERRUPTS) != 0, (uint16_t)vector);
    return NVME_SC_SUCCESS;
}

static void do_create_cq(struct nvme_command *command)
{
    nvme_complete(command, create_cq(command));
}

static enum nvme_status create_sq(struct nvme_command *command)
{
    struct nvme *nvme = command->nvme;
    const struct nvme_sqe *sqe = &command->sqe;
    uint32_t number = sqe->cdw10 & 0xffffu, cq = sqe->cdw11 >> 16;
    bool exists = number < nvme->n_queues && nvme->sq[number] != NULL && nvme->sq[number]->there;
    bool sizes = NVME_CC_IOSQES_OF(nvme->cc) == NVME_SQE_LOG2;
    enum nvme_status status = check_create(command, exists, sizes, NVME_SQE_BYTES);
    if (status != NVME_SC_SUCCESS)
        return status;
    if (cq == 0 || cq >= nvme->n_queues)
        return nvme_wrong(command, NVME_SC_QUEUE_ID_INVALID, NVME_AT(cdw11, 16));
    if (!nvme->cq[cq].there)
        return nvme_wrong(command, NVME_SC_CQ_INVALID, NVME_AT(cdw11, 16));
    nvme_sq_create(nvme, (uint16_t)number, sqe->prp1, (sqe->cdw10 >> 16) + 1, (uint16_t)cq,
                   sqe->cdw11 >> NVME_SQ_PRIORITY_SHIFT & 0x3u);
    return NVME_SC_SUCCESS;
}

static void do_create_sq(struct nvme_command *command)
{
    nvme_complete(command, create_sq(command));
}

static enum nvme_status delete_cq(struct nvme_command *command)
{
    struct nvme *nvme = command->nvme;
    const uint32_t number = command->sqe.cdw10 & 0xffffu;
    if (number == 0 || number >= nvme->n_queues || !nvme->cq[number].there)
        return nvme_wrong(command, NVME_SC_QUEUE_ID_INVALID, NVME_AT(cdw10, 0));
    if (nvme->cq[number].n_sqs != 0)
        return nvme_wrong(command, NVME_SC_QUEUE_DELETION_INVALID, NVME_AT(cdw10, 0));
    nvme->cq[number].there = false;
    return NVME_SC_SUCCESS;
}

static void do_delete_cq(struct nvme_command *command)
{
    nvme_complete(command, delete_cq(command));
}

static void delete_sq(struct nvme_command *command)
{
    struct nvme *nvme = command->nvme;
    uint32_t number = command->sqe.cdw10 & 0xffffu;
    struct nvme_sq *sq = number < nvme->n_queues ? nvme->sq[number] : NULL;
    if (number == 0 || sq == NULL || !sq->there || sq->deleting) {
        nvme_complete(command, nvme_wrong(command, NVME_SC_QUEUE_ID_INVALID, NVME_AT(cdw10, 0)));
        return;
    }
    sq->deleting = true;
    nvme_sq_update(sq);
    command->step = NVME_WAITS;
    sq->delete_command = command;
    nvme_sq_consider_deleted(sq);
}

/* ---- Abort (5.1) ----------------------------------------------------------------------------- */

/* The Abort is done with. */
static void answer(struct nvme_command *abort, bool aborted)
{
    abort->nvme->n_aborts--;
    abort->nvme->sub->stats.aborted += aborted;
    abort->result = aborted ? 0 : NVME_ABORT_NOT_ABORTED;
    nvme_complete(abort, NVME_SC_SUCCESS);
}

void nvme_abort_done(struct nvme_command *abort)
{
    answer(abort, true);
}

static bool waits_for_event(const struct nvme_command *command)
{
    return command->sq->number == 0 && command->sqe.opcode == NVME_ADMIN_ASYNC_EVENT;
}

static void abort_command(struct nvme_command *abort, struct nvme_command *command)
{
    const bool compare = command->data == NVME_DATA_COMPARE;
    if (command->step == NVME_COMPLETES || command->aborter != NULL ||
        (command->step == NVME_WAITS && !waits_for_event(command)) ||
        (command->step == NVME_ENDS && !compare)) { /* the media have changed */
        answer(abort, false);
        return;
    }
    command->aborter = abort;
    abort->step = NVME_WAITS;
    command->location = NVME_NOWHERE;
    if (command->step == NVME_WAITS) {
        nvme_event_abort(command);
    } else if (command->step == NVME_EXECUTES) {
        nvme_data_abort(command);
    } else {
        sim_cancel(nvme_sim(command->nvme), &command->event);
        nvme_complete(command, NVME_SC_ABORT_REQUESTED);
    }
}

void nvme_abort_fetched(struct nvme_command *command)
{
    struct nvme_command **at = &command->sq->aborts, *meant = NULL;
    while (*at != NULL) { /* each of them waits for one entry less, whichever this is */
        struct nvme_command *abort = *at;
        const bool is_meant = meant == NULL && abort->sqe.cdw10 >> 16 == command->sqe.cid;
        abort->list_n--;
        if (!is_meant && abort->list_n != 0) {
            at = &abort->next;
            continue;
        }
        *at = abort->next;
        if (is_meant)
            meant = abort;
        else
            answer(abort, false);
    }
    if (meant != NULL)
        abort_command(meant, command); /* which is complete then */
}

void nvme_aborts_end(struct nvme_sq *sq)
{
    while (sq->aborts != NULL) {
        struct nvme_command *abort = sq->aborts;
        sq->aborts = abort->next;
        answer(abort, false);
    }
}

static struct nvme_command *find(const struct nvme_sq *sq, const struct nvme_command *abort)
{
    for (struct nvme_command *c = sq->commands; c != NULL; c = c->sq_next)
        if (c->sqe.cid == abort->sqe.cdw10 >> 16 && c != abort)
            return c;
    return NULL;
}

static void do_abort(struct nvme_command *command)
{
    struct nvme *nvme = command->nvme;
    const uint32_t number = command->sqe.cdw10 & 0xffffu;
    struct nvme_sq *sq = number < nvme->n_queues ? nvme->sq[number] : NULL;
    if (sq == NULL || !sq->there) {
        nvme_complete(command, nvme_wrong(command, NVME_SC_INVALID_FIELD, NVME_AT(cdw10, 0)));
        return;
    }
    if (nvme->n_aborts == NVME_ABORTS_MAX) {
        nvme_complete(command, NVME_SC_ABORT_LIMIT);
        return;
    }
    nvme->n_aborts++;
    struct nvme_command *found = find(sq, command);
    if (found != NULL) {
        abort_command(command, found);
        return;
    }
    command->list_n = (sq->tail + sq->entries - sq->head) % sq->entries; /* not here yet */
    if (command->list_n == 0 || sq->deleting || sq->stopped) {
        answer(command, false);
        return;
    }
    command->step = NVME_WAITS;
    command->next = sq->aborts;
    sq->aborts = command;
}

/* ---- All ------------------------------------------------------------------------------------- */

const struct nvme_command_desc nvme_admin_commands[NVME_ADMIN_COMMANDS] = {
    [NVME_ADMIN_DELETE_SQ] = { "Delete I/O Submission Queue", 0, delete_sq },
    [NVME_ADMIN_CREATE_SQ] = { "Create I/O Submission Queue", 0, do_create_sq },
    [NVME_ADMIN_GET_LOG] = { "Get Log Page", 0, nvme_get_log },
    [NVME_ADMIN_DELETE_CQ] = { "Delete I/O Completion Queue", 0, do_delete_cq },
    [NVME_ADMIN_CREATE_CQ] = { "Create I/O Completion Queue", 0, do_create_cq },
    [NVME_ADMIN_IDENTIFY] = { "Identify", 0, nvme_identify },
    [NVME_ADMIN_ABORT] = { "Abort", 0, do_abort },
    [NVME_ADMIN_SET_FEATURES] = { "Set Features", 0, nvme_set_features },
    [NVME_ADMIN_GET_FEATURES] = { "Get Features", 0, nvme_get_features },
    [NVME_ADMIN_ASYNC_EVENT] = { "Asynchronous Event Request", 0, nvme_event_request },
    [NVME_ADMIN_VIRTUALIZATION] = { "Virtualization Management", NVME_EFFECT_CAPABILITY,
                                    nvme_virtualization },
};

void nvme_admin(struct nvme_command *command)
{
    const struct nvme_sqe *sqe = &command->sqe;
    command->nvme->sub->stats.admin_commands++;
    if (sqe->opcode >= NVME_ADMIN_COMMANDS || nvme_admin_commands[sqe->opcode].execute == NULL)
        nvme_complete(command, nvme_wrong(command, NVME_SC_INVALID_OPCODE, NVME_AT(opcode, 0)));
    else if (sqe->flags != 0) /* neither fused nor SGLs (4.2: PRPs on PCIe) */
        nvme_complete(command, nvme_wrong(command, NVME_SC_INVALID_FIELD, NVME_AT(flags, 0)));
    else
        nvme_admin_commands[sqe->opcode].execute(command);
}
