/** Messages between a process of the cluster and the one that has a thread. */
import * as ClusterSchema from "effect/cluster/ClusterSchema"
import * as Entity from "effect/cluster/Entity"
import * as Rpc from "effect/rpc/Rpc"
import * as Schema from "effect/Schema"
import { AgentEvent } from "../../../core/AgentEvent.ts"
import { Decision, Request } from "../../../core/Approval.ts"
import { HumanMessage } from "../../../core/Message.ts"
import { SessionError } from "../../../core/SessionError.ts"
import { AppCall } from "../apps/calls.ts"
import { Position } from "../position.ts"
import { RunsError } from "../service.ts"
import { Principal } from "../tenant.ts"

/** The name of a thread. Only processes of the cluster may say it: a name of a principal is not checked again. */
const thread = { principal: Principal, id: Schema.String }

const Input = Schema.Struct({
  agent: Schema.String,
  input: Schema.Union([Schema.String, HumanMessage]),
  id: Schema.String,
  model: Schema.optionalKey(Schema.NullOr(Schema.String)),
  mode: Schema.optionalKey(Schema.NullOr(Schema.String)),
  thinking: Schema.optionalKey(Schema.NullOr(Schema.String)),
  call: Schema.optionalKey(AppCall),
  busy: Schema.optionalKey(Schema.Literals(["queue", "refuse"]))
})

const Acceptance = Schema.Struct({ id: Schema.String, position: Position, isNew: Schema.Boolean })

const State = Schema.Literals(["idle", "working", "waiting"])

const Status = Schema.Struct({
  state: State,
  pending: Schema.Array(Request),
  position: Position,
  input: Schema.optionalKey(Schema.Struct({ id: Schema.String, position: Position })),
  queued: Schema.Array(Schema.String)
})

/** A stream begins with `Begin`. The cluster may begin one again at another owner, by the same request. */
const Frame = Schema.Union([
  Schema.TaggedStruct("Begin", {}),
  Schema.TaggedStruct("Event", { position: Position, event: AgentEvent }),
  Schema.TaggedStruct("Reset", { position: Position, to: Schema.Literals(["checkpoint", "beginning"]) })
])

const error = Schema.Union([RunsError, SessionError])

/** A thread of the server. All agents have one kind of entity, so that a thread has one writer. */
export const ThreadEntity = Entity.make("Server/Thread", [
  Rpc.make("Start", { payload: { ...thread, input: Input }, success: Acceptance, error }),
  Rpc.make("Decide", { payload: { ...thread, decisions: Schema.Array(Decision) }, success: Acceptance, error }),
  Rpc.make("Steer", {
    payload: { ...thread, input: Schema.Union([Schema.String, HumanMessage]) },
    error
  }),
  Rpc.make("Cancel", { payload: thread, success: Schema.Boolean, error }),
  Rpc.make("State", { payload: thread, success: State, error }),
  Rpc.make("Status", { payload: thread, success: Status, error }),
  Rpc.make("Observe", {
    payload: { ...thread, after: Schema.optionalKey(Position), follow: Schema.Boolean },
    success: Frame,
    error,
    stream: true
  }).annotate(ClusterSchema.InterruptOnTermination, true),
  /** Sends the readers of an idle thread to the store: the thread was rewound or deleted. */
  Rpc.make("Reread", { payload: { baseId: Schema.String } }),
  /** Lasts until all mail of a thread is settled. The cluster stores it, and gives it to the next owner of the thread. */
  Rpc.make("Work", { payload: { baseId: Schema.String } })
    .annotate(ClusterSchema.Persisted, true)
    .annotate(ClusterSchema.InterruptOnTermination, true)
])
