/** The options and the result of a chat. */
import type * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import type * as Stream from "effect/Stream"
import type * as Agent from "../../../core/Agent.ts"
import type { Principal, Request } from "../../../core/Approval.ts"
import type { ChatModel } from "../../../core/ChatModel.ts"
import type { Json } from "../../../core/Json.ts"
import type { HumanMessage } from "../../../core/Message.ts"
import type { Prices, Usage } from "../../../core/Usage.ts"
import type { Session as TaskSession, Task } from "../../../middleware/BackgroundTasks.ts"
import type * as FileCheckpoints from "../../../sessions/FileCheckpoints.ts"
import type { View } from "../../../view/View.ts"
import type { LearnedRules } from "../approvals/learned.ts"
import type { Permits } from "../approvals/permits.ts"
import type { Bindings } from "../input/bindings.ts"
import type { Theme } from "../render/themes.ts"

/**
 * How calls that need approval are decided: ask about all (`ask`), about all but file changes (`auto-edit`), run none
 * until the plan is accepted (`plan`), run all (`yolo`).
 */
export type Mode = "ask" | "auto-edit" | "plan" | "yolo"

/** A problem, with a message that tells a person what to do. */
export interface Problem {
  readonly message: string
}

/**
 * The agent of a chat, with names and prices to show. `chatModel` writes summaries (default: the model of the
 * context).
 */
export interface Setup<out E, out R> {
  readonly agent: Agent.Agent<unknown, E, R>
  readonly name: string
  readonly model: string
  readonly prices?: Prices | undefined
  readonly chatModel?: Layer.Layer<ChatModel, Problem> | undefined
}

/** The outcome of a slash command: Markdown to show, or a message to the agent. */
export type CommandOutcome =
  | { readonly _tag: "Show"; readonly markdown: string }
  | { readonly _tag: "Send"; readonly input: string | HumanMessage }

/** Runs a command for a slash command, after the same approval as the agent's own. Gives its output. */
export type RunCommand = (command: string) => Effect.Effect<string, Problem>

/**
 * A slash command from a file, an MCP prompt or the program. It replaces a command of the chat with the same name.
 * `argument` describes the text behind the name. `note` shows a line while the command runs.
 */
export interface Command {
  readonly name: string
  readonly description: string
  readonly argument?: string | undefined
  readonly run: (
    argument: string,
    note: (text: string) => void,
    runCommand: RunCommand
  ) => Effect.Effect<CommandOutcome, Problem>
}

/** The facts of a status line. `usage` is that of the conversation. */
export interface StatusFacts {
  readonly mode: Mode
  readonly agent: string
  readonly model: string
  readonly threadId: string
  readonly usage: Usage
  readonly context?: View["context"]
  readonly vim?: "insert" | "normal"
}

/** Makes the status line from the facts. */
export type StatusLine = (facts: StatusFacts) => Effect.Effect<string, Problem>

/** A model or an agent to choose from. */
export interface Choice {
  readonly name: string
  readonly description?: string | undefined
}

/** A change of the agent's memory that waits for the person. */
export interface MemoryChange {
  readonly path: string
  readonly diff: string
  readonly settle: (isKept: boolean) => Effect.Effect<void, Problem>
}

/** The memory that the agent writes. After each turn the person decides on its changes. */
export interface MemoryReview {
  /** Sets the function that reports whether changes are refused now. */
  readonly setPlan: (isPlan: () => boolean) => void
  readonly pending: Effect.Effect<ReadonlyArray<MemoryChange>, Problem>
  /** The sources of text from outside in a conversation. */
  readonly outside: (threadId: string) => Effect.Effect<ReadonlyArray<string>>
}

/** The workflows of a chat: saved scripts, runs in the background, and runs that can go on. */
export interface Workflows {
  /** The name of the agent that a workflow is, among the tasks in the background. */
  readonly agent: string
  /** The group of the tasks that the person starts. */
  readonly group: string
  readonly saved: Effect.Effect<{
    readonly saved: ReadonlyArray<{ readonly name: string; readonly description: string; readonly origin: string }>
    readonly problems: ReadonlyArray<string>
  }>
  readonly script: (name: string) => Effect.Effect<string, Problem>
  /** The workflows that ran in the folder. */
  readonly stored: Effect.Effect<
    ReadonlyArray<{
      readonly threadId: string
      readonly name: string
      readonly outcome: string
      readonly report: string
      readonly session: string
    }>,
    Problem
  >
  /** Opens a saved workflow, which goes on with the session of this id. */
  readonly open: (
    name: string,
    args: string,
    session: string
  ) => Effect.Effect<{ readonly description: string; readonly session: TaskSession }, Problem>
  readonly reopen: (id: string) => Effect.Effect<{ readonly task: Task; readonly session: TaskSession }, Problem>
  /** The progress of a task, as lines, by the data that the task keeps. */
  readonly live: (kept: Json | undefined) =>
    | {
        readonly threadId: string
        readonly name: string
        readonly startedAt: number
        readonly lines: ReadonlyArray<string>
      }
    | undefined
}

/**
 * The options of a chat.
 *
 * `setup` is the first agent; `choose` makes another one. The agent should take `Backend` and `Approvals` from its
 * context:
 * the chat records files there, and answers there. `resumes` continues the stored run of the thread. `first`
 * is the
 * first message. `history` and `draft` are files. `resumeCommand` is printed at the end.
 */
export interface Options<out E, out R> {
  readonly threadId: string
  readonly setup: Setup<E, R>
  readonly choose?:
    | ((choice: { readonly agent?: string; readonly model?: string }) => Effect.Effect<Setup<E, R>, Problem>)
    | undefined
  readonly agents?: ReadonlyArray<Choice> | undefined
  /** Lists the models to choose from. */
  readonly models?: Effect.Effect<ReadonlyArray<Choice>> | undefined
  /** Makes a model a favourite, or no longer one. Returns whether it is one now. */
  readonly onFavourite?: ((model: string) => Effect.Effect<boolean, Problem>) | undefined
  /** Notices for the person, once each. */
  readonly notes?: Stream.Stream<string> | undefined
  /** The first line of the chat. */
  readonly header?: string | undefined
  /** The current commands. They may change while the chat runs. */
  readonly commands?: (() => ReadonlyArray<Command>) | undefined
  /** The instruction files in the agent's prompt. */
  readonly instructions?:
    | ReadonlyArray<{ readonly path: string; readonly bytes: number; readonly isWhole: boolean }>
    | undefined
  readonly mode?: Mode | undefined
  /** Tells whether a hook allowed a call. */
  readonly isAllowed?: ((callId: string) => boolean) | undefined
  /** Gets each request that a person has to decide. */
  readonly onWait?: ((request: Request) => void) | undefined
  /** Is given the mode of the chat, which changes. */
  readonly onMode?: ((mode: () => Mode) => void) | undefined
  /** The rules for calls. Without them, a person decides on all. */
  readonly permits?: Permits | undefined
  /** Runs before a person has the conversation compacted. A failure keeps it as it is. */
  readonly beforeCompact?: ((threadId: string, focus: string) => Effect.Effect<void, Problem>) | undefined
  /** Gets the approvals for good, of the chat and of the project. */
  readonly onLearned?: ((learned: ReadonlyArray<LearnedRules>) => void) | undefined
  /** The limits of a run: US dollars and tokens. */
  readonly limits?: { readonly cost?: number | undefined; readonly tokens?: number | undefined } | undefined
  readonly theme?: Theme | undefined
  /** Stores a theme for later chats. */
  readonly onTheme?: ((theme: Theme) => Effect.Effect<void, Problem>) | undefined
  readonly bindings?: Bindings | undefined
  /** The line in place of mode, agent, model, context and cost. */
  readonly statusLine?: StatusLine | undefined
  readonly vim?: boolean | undefined
  /** Stores whether later chats take vim keys. */
  readonly onVim?: ((isVim: boolean) => Effect.Effect<void, Problem>) | undefined
  readonly plain?: boolean | undefined
  readonly resumes?: boolean | undefined
  readonly first?: string | HumanMessage | undefined
  readonly folder?: string | undefined
  /** Keeps the files of turns for `/undo` and `/redo`. */
  readonly checkpoints?: FileCheckpoints.Service | undefined
  /** The workflows of the chat. Without them there is no `/workflow`. */
  readonly workflows?: Workflows | undefined
  readonly history?: string | undefined
  readonly draft?: string | undefined
  readonly principal?: Principal | undefined
  readonly remembering?: MemoryReview | undefined
  /** Locks the thread against other processes until the scope of its change ends. */
  readonly hold?: ((threadId: string) => Effect.Effect<unknown, Problem, Scope.Scope>) | undefined
  readonly resumeCommand?: ((threadId: string) => string) | undefined
}

/** The result of a chat: its last thread. */
export interface ChatEnd {
  readonly threadId: string
}
