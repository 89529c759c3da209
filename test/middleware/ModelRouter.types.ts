import { Context, Data, Effect, type Layer } from "effect"
import { Agent, type ChatModel, type ModelError } from "effect-deepagents"
import { CircuitBreaker, ModelHedge, ModelRouter, ResponseCache } from "effect-deepagents/middleware"
import type { KeyValueStore } from "effect/persistence"
import { expectTypeOf } from "vitest"

class NoKey extends Data.TaggedError("NoKey") {}
class Closed extends Data.TaggedError("Closed") {}
class Keys extends Context.Service<Keys, string>()("Keys") {}
class Hours extends Context.Service<Hours, boolean>()("Hours") {}

declare const plain: Layer.Layer<ChatModel.ChatModel>
declare const keyed: Layer.Layer<ChatModel.ChatModel, NoKey, Keys>

// The failures and needs of all models and rules are the agent's.
expectTypeOf(
  Agent.make({
    name: "a",
    prompt: "",
    middleware: [
      ModelRouter.make({
        models: { plain, keyed },
        rules: [
          ModelRouter.byPurpose({ summary: "plain" }),
          ModelRouter.cheapest(["plain", "keyed"]),
          ModelRouter.byClassifier({ models: { plain: "simple", keyed: "hard" }, by: "plain" }),
          ({ run }) => (run.round > 3 ? "keyed" : undefined),
          () => Effect.flatMap(Hours, (open) => (open ? Effect.succeed("plain" as const) : Effect.fail(new Closed())))
        ],
        overflow: "keyed"
      })
    ]
  })
).toEqualTypeOf<Agent.Agent<string, ModelError.ModelError | NoKey | Closed, ChatModel.ChatModel | Keys | Hours>>()

// @ts-expect-error a model that is not there
ModelRouter.make({ models: { plain }, rules: [], overflow: "other" })
// @ts-expect-error a rule for a model that is not there
ModelRouter.make({ models: { plain }, rules: [ModelRouter.byPurpose({ summary: "other" })] })
// @ts-expect-error a rule that names a model that is not there
ModelRouter.make({ models: { plain }, rules: [() => "other"] })

expectTypeOf(
  Agent.make({
    name: "a",
    prompt: "",
    middleware: [ResponseCache.make(), ModelHedge.make([plain, keyed]), CircuitBreaker.make()]
  })
).toEqualTypeOf<
  Agent.Agent<string, ModelError.ModelError | NoKey, ChatModel.ChatModel | Keys | KeyValueStore.KeyValueStore>
>()
