import * as NodeRedis from "@effect/platform-node/NodeRedis"
import * as RedisLedger from "effect-deepagents/stores/RedisLedger"
import * as Layer from "effect/Layer"
import type { Place } from "../../sessions/children/stores.ts"

export const onRedis = ({ name, url }: Place) =>
  RedisLedger.layer({ prefix: name }).pipe(Layer.provide(NodeRedis.layer({ url })))
