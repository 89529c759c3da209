import type { Layer } from "effect"
import {
  Agent,
  type Backend,
  type ChatModel,
  type ModelError,
  type Sandbox,
  type Tool,
  type ToolContext
} from "effect-deepagents"
import { ApplyPatch, FileTools } from "effect-deepagents/backends"
import { expectTypeOf } from "vitest"

type FileTool = Tool.Tool<Backend.Backend | ToolContext.ToolContext>
type SandboxTool = Tool.Tool<Backend.Backend | Sandbox.Sandbox | ToolContext.ToolContext>

// Without `execute` only files are needed.
expectTypeOf(FileTools.make()).toEqualTypeOf<ReadonlyArray<FileTool>>()
expectTypeOf(FileTools.make({ only: ["ls"] })).toEqualTypeOf<ReadonlyArray<FileTool>>()
expectTypeOf(FileTools.make({ execute: false })).toEqualTypeOf<ReadonlyArray<FileTool>>()
expectTypeOf(ApplyPatch.make()).toEqualTypeOf<FileTool>()

// With it, there is.
expectTypeOf(FileTools.make({ execute: true })).toEqualTypeOf<ReadonlyArray<SandboxTool>>()
expectTypeOf(FileTools.make({ execute: { timeout: "1 minute" } })).toEqualTypeOf<ReadonlyArray<SandboxTool>>()

const files = Agent.make({ name: "a", prompt: "", tools: [...FileTools.make(), ApplyPatch.make()] })
expectTypeOf(files).toEqualTypeOf<Agent.Agent<string, ModelError.ModelError, ChatModel.ChatModel | Backend.Backend>>()

const commands = Agent.make({ name: "a", prompt: "", tools: FileTools.make({ execute: true }) })
expectTypeOf(commands).toEqualTypeOf<
  Agent.Agent<string, ModelError.ModelError, ChatModel.ChatModel | Backend.Backend | Sandbox.Sandbox>
>()

// A backend alone leaves the need of a sandbox open; a sandbox meets both.
declare const backend: Layer.Layer<Backend.Backend>
declare const sandbox: Layer.Layer<Backend.Backend | Sandbox.Sandbox>
expectTypeOf(commands.pipe(Agent.provide(backend))).toEqualTypeOf<
  Agent.Agent<string, ModelError.ModelError, ChatModel.ChatModel | Sandbox.Sandbox>
>()
expectTypeOf(commands.pipe(Agent.provide(sandbox))).toEqualTypeOf<
  Agent.Agent<string, ModelError.ModelError, ChatModel.ChatModel>
>()

declare const either: boolean
// @ts-expect-error: the making of the agent must know whether there are commands
FileTools.make({ execute: either })
// @ts-expect-error: there is no such tool
FileTools.make({ only: ["rm"] })
// @ts-expect-error: a command can't be had by narrowing
FileTools.make({ only: ["execute"] })
