/** What plans the work on a thread, for the servers of this package. */
export { codecs } from "./internal/codecs.ts"
export { orNothing } from "./internal/eventFeed.ts"
export { toMessage, toSteering } from "./internal/inputs.ts"
export { pendingOf, plan, type Push } from "./internal/plan.ts"
export { retryCut, retryUnavailable, uncutStream } from "./internal/retries.ts"
