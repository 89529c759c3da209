/** The shapes of options, by which constructors check them. `npm run options` writes this file from the types. */

export const attendantAttend = "threadId:s;mailbox:s"

export const autopilotMake =
  "worker:~effect-deepagents/Agent~;check?:~effect-deepagents/Agent~;stop?:f;limits?:{tokens?:n;cost?:n;toolCalls?:n;rounds?:n;time?:d};steps?:n;heartbeat?:d;name?:s;description?:s"

export const channelLayer = "maxSize?:n;maxPending?:n;accepts?:f;mayInterrupt?:f"

export const channelTools = "as:s;wake?:'interrupting''quiet''waking'"

export const dreamMake = "paths:[s];author?:~effect-deepagents/Agent~"

export const dreamQuietThreads = "quiet:d;since?:n;where?:o"

export const goalMake =
  "worker:~effect-deepagents/Agent~;judge?:~effect-deepagents/Agent~;evidence?:f;attempts?:n;every?:d;name?:s;description?:s"

export const mapReduceMake =
  "name:s;description?:s;input?:~effect/Schema/Schema~~standard~;output?:~effect/Schema/Schema~~standard~;split:f;map:~effect-deepagents/Agent~;reduce:f;concurrency?:n"

export const monitorWatch = "threadId:s;prompt?:s;where?:f;most?:n;within?:d"

export const pipelineMake = "name:s;description?:s;steps:<o>;concurrency?:n"

export const planMake =
  "worker:~effect-deepagents/Agent~;planner?:~effect-deepagents/Agent~;check?:f;when?:{minLength?:n;words?:[s]};replans?:n;name?:s;description?:s"

export const reflectMake =
  "worker:~effect-deepagents/Agent~;critic?:~effect-deepagents/Agent~;threshold?:n;most?:n;name?:s;description?:s"

export const supervisorMake =
  "workers:[~effect-deepagents/Agent~];lead?:~effect-deepagents/Agent~;most?:n;concurrency?:n;name?:s;description?:s"

export const teamMake =
  "members:[~effect-deepagents/Agent~];coordinator?:~effect-deepagents/Agent~;rounds?:n;name?:s;description?:s"
