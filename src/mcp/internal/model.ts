/** Things that servers have, and results of calls; public by `McpServers`. */
import type * as Effect from "effect/Effect"
import type * as Content from "../../core/Content.ts"
import type { Json, JsonObject } from "../../core/Json.ts"
import type { Message } from "../../core/Message.ts"
import type { CitedSource } from "../../core/Sources.ts"
import type { Annotations } from "../../core/Tool.ts"
import type { Server } from "../McpConfig.ts"
import type { McpError } from "../McpError.ts"

/**
 * A tool of a server. `name` is its name for models, `tool` the server's own; `digest` identifies its definition (see
 * `pins` of `McpConfig`). Effects that the server does not declare stay undeclared.
 */
export interface ServerTool {
  readonly name: string
  readonly server: string
  readonly tool: string
  readonly title: string | undefined
  readonly description: string
  readonly parameters: JsonObject
  readonly annotations: Annotations
  /** The address of the interface that shows its results (MCP Apps): a resource of its server. */
  readonly app?: string
  /** Its callers: models, and the interfaces of its server. Missing: both. */
  readonly callers?: ReadonlyArray<"app" | "model">
  readonly digest: () => string
}

/**
 * The current state of a server. `connecting` is an attempt without earlier tools, `reconnecting` an attempt to restore
 * a lost connection (its tools are still offered). `failed` waits for the next attempt at `retryAt`, or, without it,
 * for `reconnect`. `error` is the error of the last attempt, also during the next one. `problems` are the problems of
 * its configuration, such as a missing tool or a changed pin. `log` is the end of its standard error.
 */
export interface Status {
  readonly name: string
  readonly type: Server["type"]
  readonly state: "disabled" | "connecting" | "connected" | "reconnecting" | "failed"
  readonly tools: number
  readonly error?: McpError
  /** Milliseconds since the epoch at which it is tried again. */
  readonly retryAt?: number
  /** That of its process. */
  readonly pid?: number
  readonly protocolVersion?: string
  readonly title?: string
  readonly version?: string
  readonly instructions?: string
  /** Set if the server says that it has something to read. */
  readonly hasResources: boolean
  readonly problems: ReadonlyArray<string>
  readonly log: string
}

/** A prompt that a server has, for a person to choose: a command of a terminal, for one. `get` fills it in. */
export interface Prompt {
  readonly server: string
  readonly name: string
  readonly title: string | undefined
  readonly description: string
  readonly arguments: ReadonlyArray<{
    readonly name: string
    readonly description: string
    readonly isRequired: boolean
  }>
  readonly get: (args: { readonly [name: string]: string }) => Effect.Effect<ReadonlyArray<Message>, McpError>
}

/**
 * A readable resource of a server. With a `template` (a URI template, RFC 6570) it describes many resources. Its
 * parameters can be completed, but it can't be read itself.
 */
export interface Resource {
  readonly server: string
  readonly uri: string
  readonly isTemplate: boolean
  readonly name: string
  readonly description: string
  readonly mimeType: string | undefined
  readonly size: number | undefined
}

/** A part of the content under a URI: a text, or bytes as base64. */
export type ResourceContent =
  | { readonly uri: string; readonly mimeType: string | undefined; readonly text: string }
  | { readonly uri: string; readonly mimeType: string | undefined; readonly base64: string }

/**
 * The interface of a tool (MCP Apps): a page of HTML, and the origins that it wants to ask (`connect`) and to load scripts,
 * styles and pictures from (`resources`). It is a stranger's program: show it in a sandbox only.
 */
export interface App {
  readonly html: string
  readonly connect: ReadonlyArray<string>
  readonly resources: ReadonlyArray<string>
}

/** The thing whose argument is completed: a prompt by its name, or a template of resources. */
export type Completable = { readonly prompt: string } | { readonly template: string }

/** The result of a call. `structured` fits the tool's schema, `sources` are the named resources. */
export interface Result {
  readonly content: ReadonlyArray<Content.Block>
  readonly structured?: Json
  readonly isError: boolean
  readonly sources: ReadonlyArray<CitedSource>
}

/** A question of a server in the middle of a call: for values by a JSON Schema, or to open a `url`. */
export interface ServerQuestion {
  readonly message: string
  readonly schema?: JsonObject
  readonly url?: string
}

/** The answer to a question: with the values, a refusal, or nothing. */
export interface Reply {
  readonly action: "accept" | "decline" | "cancel"
  readonly content?: JsonObject
}

/** A request of a server for an answer of the model. */
export interface SampleRequest {
  readonly messages: ReadonlyArray<Message>
  readonly systemPrompt: string
  readonly maxTokens: number
  readonly temperature?: number
  readonly stopSequences?: ReadonlyArray<string>
}

/** The answer of the model. */
export interface SamplingAnswer {
  readonly text: string
  readonly model: string
  readonly stopReason: string
}

/** The word of a server on how far a call is. */
export interface Progress {
  readonly progress: number
  readonly total?: number
  readonly message?: string
}

/** A line of a server's log. */
export interface LogLine {
  readonly level: string
  readonly logger?: string
  readonly data: Json
}

/**
 * Handlers during a call, in its fiber. Without `onQuestion` questions are declined, without `onSample` the model is
 * not asked. `owner` names the calling run: a server's question while calls of several runs are open belongs to none of
 * them.
 */
export interface CallOptions<out E = never, out R = never> {
  /** The calling run. Default: none. */
  readonly owner?: string | undefined
  /** Answers questions of the server. Default: they are declined. */
  readonly onQuestion?: ((asked: ServerQuestion) => Effect.Effect<Reply, E, R>) | undefined
  /** Asks the model for the server. Default: the model is not asked. */
  readonly onSample?: ((request: SampleRequest) => Effect.Effect<SamplingAnswer, E, R>) | undefined
  /** Gets the progress of the call. Default: ignored. */
  readonly onProgress?: ((progress: Progress) => Effect.Effect<void, E, R>) | undefined
  /** Gets lines of the server's log. Default: ignored. */
  readonly onLog?: ((logged: LogLine) => Effect.Effect<void, E, R>) | undefined
}
