/** The words between the process of commands and this one, which has the backend. They are sent in batches. */
import type { Fault } from "./errors.ts"

/** The file or folder at a path, as a command sees it. */
export interface Status {
  readonly kind: "file" | "directory" | "link"
  readonly size: number
  readonly modifiedAt: number
  readonly mode: number
  /** The path without links. */
  readonly identity: string
}

/** An operation on files. `open` makes a file that output goes to, or looks whether output may be added to it. */
export type Call =
  | { readonly op: "read" | "stat" | "lstat" | "exists" | "list" | "readlink" | "realpath"; readonly path: string }
  | { readonly op: "write" | "append"; readonly path: string; readonly content: Uint8Array }
  | { readonly op: "open"; readonly path: string; readonly append: boolean }
  | { readonly op: "mkdir"; readonly path: string; readonly recursive: boolean }
  | { readonly op: "remove"; readonly path: string; readonly recursive: boolean; readonly force: boolean }
  | { readonly op: "copy"; readonly path: string; readonly to: string; readonly recursive: boolean }
  | { readonly op: "move"; readonly path: string; readonly to: string }
  | { readonly op: "chmod"; readonly path: string; readonly mode: number }

/** The result of each operation. */
export interface Reply {
  readonly bytes?: Uint8Array | undefined
  readonly status?: Status | undefined
  readonly exists?: boolean | undefined
  readonly names?: ReadonlyArray<{ readonly name: string; readonly kind: Status["kind"] }> | undefined
  readonly path?: string | undefined
}

/** A command line. `limit` is how many milliseconds it has. */
export interface Run {
  readonly _tag: "Run"
  readonly run: number
  readonly command: string
  readonly cwd: string
  readonly env: { readonly [name: string]: string }
  readonly stdin: string
  readonly limit: number
  readonly maxCommands: number
  readonly maxLoopIterations: number
  readonly maxCallDepth: number
  readonly network: ReadonlyArray<string> | undefined
  /** Set if there are folders of programs: a shell looks there for each command that it runs. */
  readonly hasPrograms: boolean
}

/** The answer to an operation: its result, or its failure. */
export interface Answer {
  readonly _tag: "Answer"
  readonly ask: number
  readonly answer: Reply | Fault
}

/** To the process. */
export type Order =
  | Run
  | Answer
  /** The time is up. Requests the output so far. */
  | { readonly _tag: "Abort" }

/** From the process. `rss` is the memory that it has, in bytes. */
export type Report =
  | { readonly _tag: "Ready" }
  | { readonly _tag: "Unusable"; readonly problem: string }
  | { readonly _tag: "Ask"; readonly run: number; readonly ask: number; readonly call: Call }
  | { readonly _tag: "Output"; readonly run: number; readonly channel: "stdout" | "stderr"; readonly text: string }
  | { readonly _tag: "Failed"; readonly run: number; readonly problem: string }
  | {
      readonly _tag: "Done"
      readonly run: number
      readonly exitCode: number
      readonly isLate: boolean
      readonly rss: number
    }
