/** Rules for the calls of agents, as data; and an inbox of the requests to people, over all threads. */
export * as Audit from "./Audit.ts"
export * as Decisions from "./Decisions.ts"
export * as Inbox from "./Inbox.ts"
export * as Notify from "./Notify.ts"
export * as Policy from "./Policy.ts"
export * as Tamper from "./Tamper.ts"
