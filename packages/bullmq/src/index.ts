export { bullmq, type BullmqOptions } from './bullmq.ts';
export {
  type BullmqEngine,
  type BullmqEngineOptions,
  createBullmqEngine,
  type TicketWorkerOptions,
} from './bullmq-engine.ts';
export type { Ticket } from './ticket.ts';
