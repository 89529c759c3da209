/**
 * Lets agents give files to people: documents, pages, pictures, data.
 *
 * An artifact is a file below `/artifacts`, an entry in the state of the run (`Artifacts.of`), and an event
 * `Custom("artifact")`. Sub-agents share them with their parent. A new artifact replaces one of the same name.
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent } from "effect-deepagents"
 * import { Artifacts } from "effect-deepagents/workspace"
 *
 * const analyst = Agent.make({ name: "analyst", prompt: "You write reports.", tools: [Artifacts.make()] })
 * const files = Effect.map(Agent.run(analyst, "Report on sales."), Artifacts.of)
 * ```
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as AgentState from "../core/AgentState.ts"
import { Backend } from "../core/Backend.ts"
import * as Tool from "../core/Tool.ts"
import { ToolContext } from "../core/ToolContext.ts"
import * as ToolError from "../core/ToolError.ts"
import * as ToolOutput from "../core/ToolOutput.ts"

const Artifact = Schema.Struct({
  path: Schema.String,
  title: Schema.String,
  mediaType: Schema.String
})
/** A file that the agent made for the person: its path, title and media type. */
export interface Artifact extends Schema.Schema.Type<typeof Artifact> {}

const mergeArtifacts = (
  current: ReadonlyArray<Artifact>,
  incoming: ReadonlyArray<Artifact>
): ReadonlyArray<Artifact> => [...new Map([...current, ...incoming].map((one) => [one.path, one])).values()]

/** The artifacts of a run and all of its sub-agents, by path. */
const slot: AgentState.Slot<ReadonlyArray<Artifact>> = AgentState.slot("artifacts", {
  schema: Schema.Array(Artifact),
  initial: [],
  shared: { merge: mergeArtifacts }
})

/** Returns the artifacts of a result or a checkpoint. */
export const of = (result: { readonly state: AgentState.Snapshot }): ReadonlyArray<Artifact> =>
  Result.getOrElse(AgentState.read(result.state, slot), () => [])

const folder = "/artifacts"

const types = new Map([
  ["csv", "text/csv"],
  ["html", "text/html"],
  ["json", "application/json"],
  ["md", "text/markdown"],
  ["pdf", "application/pdf"],
  ["png", "image/png"],
  ["svg", "image/svg+xml"]
])

const typeOf = (name: string): string => types.get(name.slice(name.lastIndexOf(".") + 1).toLowerCase()) ?? "text/plain"

/** A valid media type, which is safe in a header. */
const mediaType = /^[a-z0-9][a-z0-9!#$&^_.+-]{0,62}\/[a-z0-9][a-z0-9!#$&^_.+-]{0,126}$/i

const name = /^[^/\\\p{Cc}]{1,200}$/u

const placeFile = Effect.fnUntraced(function* (path: string, content: string | undefined, from: string | undefined) {
  const backend = yield* Backend
  if (content !== undefined) return yield* backend.write(path, content)
  const [file] = yield* backend.download([from ?? ""])
  if (file === undefined) return yield* ToolError.make("the file could not be had")
  if (!file.ok) return yield* Effect.fail(file.error)
  const [transfer] = yield* backend.upload([{ path, content: file.value }])
  if (transfer === undefined) return yield* ToolError.make("the file could not be written")
  return transfer.ok ? transfer.value : yield* Effect.fail(transfer.error)
})

/** Makes the tool `create_artifact`. */
export const make = (): Tool.Tool<Backend | ToolContext> =>
  Tool.make("create_artifact", {
    description:
      "Gives the user a file as a result: a document, a page, data. Either its content, or the path of a file that you have made.",
    parameters: {
      name: Schema.String.annotate({ description: "The name of the file, for example report.md" }),
      title: Schema.optionalKey(Schema.String.annotate({ description: "What people call it; the name if left out" })),
      content: Schema.optionalKey(Schema.String.annotate({ description: "Its text" })),
      from: Schema.optionalKey(Schema.String.annotate({ description: "The path of the file that it is" })),
      media_type: Schema.optionalKey(Schema.String.annotate({ description: "Its type, if the name does not say it" }))
    },
    annotations: { idempotent: true },
    execute: Effect.fnUntraced(function* ({ content, from, media_type, name: inputName, title = inputName }) {
      if (!name.test(inputName) || inputName === "." || inputName === "..") {
        return yield* ToolError.make(
          `${JSON.stringify(inputName.slice(0, 100))} is no name of a file; give one such as report.md`
        )
      }
      if ((content === undefined) === (from === undefined)) {
        return yield* ToolError.make("give either content, or from: the path of a file")
      }
      if (media_type !== undefined && !mediaType.test(media_type)) {
        return yield* ToolError.make(
          `${JSON.stringify(media_type.slice(0, 100))} is no media type; give one such as text/html`
        )
      }
      const path = `${folder}/${inputName}`
      yield* placeFile(path, content, from)
      const artifact: Artifact = { path, title: title.slice(0, 300), mediaType: media_type ?? typeOf(inputName) }
      const { run } = yield* ToolContext
      yield* run.state.set(slot, mergeArtifacts(yield* run.state.get(slot), [artifact]))
      yield* run.custom("artifact", { ...artifact })
      return ToolOutput.make(`The user has it: ${path}`, { details: { kind: "artifact", ...artifact } })
    })
  })
