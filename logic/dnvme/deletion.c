/*
 * How the manager deletes queue pairs.
 *
 * What it does: Deletes the submission queue, then the completion queue, by admin commands that
 *   nothing waits for: the first ends when the last command of the queue has, which for a host that
 *   is gone may take as long as the controller's completion time-out. One entry of the admin queue
 *   is left to commands that are waited for; deletions that find no other wait for one.
 * Follows: NVM Express 1.3, sections 5.5, 5.6.
 * Costs: Two admin commands.
 */
#include "logic/dnvme/dnvme_internal.h"

#define ROOM_MIN 2u

static void end(struct dnvme_deletion *d, int status)
{
    dnvme_server_deleted(d->all->server, d->id, status);
}

static void submit(struct dnvme_deletion *d)
{
    struct nvme_user_controller *controller = d->all->controller;
    const uint8_t opcode = d->sq_deleted ? NVME_ADMIN_DELETE_CQ : NVME_ADMIN_DELETE_SQ;
    d->command.sqe = (struct nvme_sqe){ .opcode = opcode, .cdw10 = d->id };
    d->waits = !controller->gone && nvme_user_qp_room(&controller->admin) < ROOM_MIN;
    if (d->waits) {
        d->all->n_waiting++;
        return;
    }
    const int status = controller->gone
                           ? -ENODEV
                           : nvme_user_qp_submit(&controller->admin, &d->command, NULL, 0);
    if (status != 0)
        end(d, status);
}

static void command_done(struct nvme_user_command *command)
{
    struct dnvme_deletion *d = command->context;
    const bool was_cq = d->sq_deleted;
    if (command->status != NVME_SC_SUCCESS) {
        end(d, -EIO);
        return;
    }
    d->sq_deleted = !was_cq;
    if (was_cq)
        end(d, 0);
    else
        submit(d);
}

void dnvme_deletions_begin(struct dnvme_deletions *all, uint16_t id)
{
    struct dnvme_deletion *d = &all->pair[id];
    d->command = (struct nvme_user_command){ .done = command_done, .context = d };
    d->all = all;
    d->id = id;
    submit(d);
}

void dnvme_deletions_continue(struct dnvme_deletions *all)
{
    for (unsigned i = 0; i < NVME_QUEUES_MAX && all->n_waiting != 0; i++) {
        struct dnvme_deletion *d = &all->pair[i];
        if (!d->waits)
            continue;
        if (!all->controller->gone && nvme_user_qp_room(&all->controller->admin) < ROOM_MIN)
            return;
        all->n_waiting--;
        submit(d);
    }
}
