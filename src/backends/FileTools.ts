/**
 * The tools by which an agent works on files, and runs commands, over whatever backend is in context.
 *
 * `ls read_file write_file edit_file delete_file move_file glob grep` need a `Backend`. `execute` is there on demand
 * and needs a `Sandbox`: an agent that has it can't be run without one.
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent } from "effect-deepagents"
 * import { FileTools, MemoryBackend } from "effect-deepagents/backends"
 *
 * const writer = Agent.make({ name: "writer", prompt: "You keep notes.", tools: FileTools.make() })
 * const reader = Agent.make({
 *   name: "reader",
 *   prompt: "You answer from the notes.",
 *   tools: FileTools.make({ only: ["read_file", "glob", "grep"] })
 * })
 *
 * const notes = Agent.run(writer, "Note what we know of Ada.").pipe(
 *   Effect.andThen(Agent.run(reader, "What do we know?")),
 *   Effect.provide(MemoryBackend.layer())
 * )
 * ```
 */
import * as Duration from "effect/Duration"
import type { Backend } from "../core/Backend.ts"
import type { Format } from "../core/Document.ts"
import type { Sandbox } from "../core/Sandbox.ts"
import { refuseTools } from "../core/schema/invalid.ts"
import type { Tool } from "../core/Tool.ts"
import type { ToolContext } from "../core/ToolContext.ts"
import { check } from "../support/options/check.ts"
import { processTools } from "./internal/processes/tools.ts"
import * as shapes from "./internal/shapes.ts"
import { execute } from "./internal/tools/execute.ts"
import { type Kit, makeKit, type Name, names } from "./internal/tools/kit.ts"
import { ls, readFile } from "./internal/tools/read.ts"
import { glob, grep } from "./internal/tools/search.ts"
import { deleteFile, editFile, moveFile, writeFile } from "./internal/tools/write.ts"

export { names } from "./internal/tools/kit.ts"

/** Options of the file tools. */
export interface Options {
  /**
   * The tools to make. `edit_file` includes `read_file`, since an agent must read a file before it edits it. Default:
   * all.
   */
  readonly only?: ReadonlyArray<Name> | undefined
  /**
   * Formats that `read_file` converts to text with page and sheet marks, from
   * `effect-deepagents/documents/Documents`. Default: none.
   */
  readonly documents?: ReadonlyArray<Format> | undefined
}

/** Time limits of commands, and whether they may go on in the background. */
export interface ExecuteOptions {
  /** The time limit of commands that set none. Default: 2 minutes. */
  readonly timeout?: Duration.Input | undefined
  /** The longest time limit that the model may choose. Default: 1 hour. */
  readonly maxTimeout?: Duration.Input | undefined
  /**
   * Lets `execute` start processes in the background, and adds `read_output`, `send_input` and `kill_process`: see
   * `Processes`. Default: `false`.
   */
  readonly background?: boolean | undefined
}

/** A tool for files. */
type FileTool = Tool<Backend | ToolContext>

/** A tool for files or commands. */
type SandboxTool = Tool<Backend | Sandbox | ToolContext>

const makers: { readonly [Key in Name]: (kit: Kit) => FileTool } = {
  ls,
  read_file: readFile,
  write_file: writeFile,
  edit_file: editFile,
  delete_file: deleteFile,
  move_file: moveFile,
  glob,
  grep
}

const limitsOf = (options: ExecuteOptions) => {
  const maxTimeout = Duration.fromInputUnsafe(options.maxTimeout ?? "1 hour")
  const timeout = Duration.fromInputUnsafe(options.timeout ?? "2 minutes")
  return { timeout: Duration.min(timeout, maxTimeout), maxTimeout, background: options.background === true }
}

/** A set of file tools. Tools are immutable, so agents share them. */
interface Offer {
  readonly kit: Kit
  readonly tools: ReadonlyArray<FileTool>
}

/** Sets of tools by their names. */
const offers = new Map<string, Offer>()

const offerOf = ({ documents = [], only = names }: Options): Offer => {
  const wanted = new Set(only)
  if (wanted.has("edit_file")) wanted.add("read_file")
  const offered = names.filter((name) => wanted.has(name))
  const key = offered.join(" ")
  const cachedOffer = documents.length === 0 ? offers.get(key) : undefined
  if (cachedOffer !== undefined) return cachedOffer
  const kit = makeKit(new Set(offered), documents)
  const offer = { kit, tools: offered.map((name) => makers[name](kit)) }
  if (documents.length === 0) offers.set(key, offer)
  return offer
}

const makeTools = (
  options: Options & { readonly execute?: boolean | ExecuteOptions | undefined } = {}
): ReadonlyArray<SandboxTool> => {
  const { kit, tools } = offerOf(options)
  if (options.execute === undefined || options.execute === false) return [...tools]
  const limits = limitsOf(options.execute === true ? {} : options.execute)
  return [...tools, execute(kit, limits), ...(limits.background ? processTools : [])]
}

const checkMake = check(shapes.fileToolsMake)

/**
 * Makes the tools.
 *
 * An agent may edit or replace a file only after it has read a part of it or written it, and only while the file is
 * unchanged since. The versions it has seen are kept in its state and survive a resume; a sub-agent starts without
 * any. Calls of one round on the same file wait for each other. Failures tell the model its next step.
 *
 * Models with vision receive images and PDFs, all models receive recordings; an adapter replaces a recording by a
 * note for models without hearing. With `documents`, a document becomes citable text (`raw` returns the original).
 * Results are bounded, and explain how to get the rest. `details` of a result (for people, in `ToolCompleted`) has a
 * `kind`: `read`, `write` and `edit` (with a `diff`), `delete`, `move`, `listing`, `matches` or `command` (with the
 * `exitCode`). A running command reports its last lines as `{ output }` in `ToolProgress`, at most twice a second.
 */
export const make: {
  (
    options?: Options & {
      /** Adds the tool `execute`, which needs a `Sandbox`: `true`, or its options. Default: `false`. */
      readonly execute?: false | undefined
    }
  ): ReadonlyArray<FileTool>
  (
    options: Options & {
      /** Adds the tool `execute`, which needs a `Sandbox`: `true`, or its options. */
      readonly execute: true | ExecuteOptions
    }
  ): ReadonlyArray<SandboxTool>
} = (options?: Options & { readonly execute?: boolean | ExecuteOptions | undefined }): ReadonlyArray<FileTool> => {
  const problem = checkMake(options)
  // Without `execute` no tool needs a sandbox; with it, the second form says so.
  return refuseTools(problem, makeTools(problem === undefined ? options : {})) as ReadonlyArray<FileTool>
}
