/** Both ways: a toolkit of effect/ai in an agent, and a model of here behind effect/ai. */
import { Console, Effect, Layer, Schema } from "effect"
import { Agent } from "effect-deepagents"
import { ChatModels } from "effect-deepagents/models"
import * as EffectAiToolkit from "effect-deepagents/models/bridges/EffectAiToolkit"
import * as LanguageModelFromChatModel from "effect-deepagents/models/bridges/LanguageModelFromChatModel"
import { LanguageModel, Tool, Toolkit } from "effect/ai"

const clocks = Toolkit.make(
  Tool.make("get_time", { parameters: Schema.Struct({ city: Schema.String }), success: Schema.String })
)
const Clocks = clocks.toLayer({ get_time: ({ city }) => Effect.succeed(`It is noon in ${city}.`) })
const agent = Agent.make({ name: "clerk", prompt: "You tell the time.", tools: EffectAiToolkit.fromToolkit(clocks) })
const model = ChatModels.resolve("anthropic:claude-sonnet-5-5")
const program = Effect.gen(function* () {
  yield* Console.log((yield* Agent.run(agent, "What time is it in Oslo?")).text)
  yield* Console.log((yield* LanguageModel.generateText({ prompt: "Say hello" })).text)
}).pipe(Effect.provide([Clocks, model, LanguageModelFromChatModel.layer.pipe(Layer.provide(model))]))
await Effect.runPromise(program)
