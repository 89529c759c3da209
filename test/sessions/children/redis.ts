import * as NodeRedis from "@effect/platform-node/NodeRedis"
import * as RedisSessions from "effect-deepagents/sessions/RedisSessions"
import * as Layer from "effect/Layer"
import type { Place } from "./stores.ts"

export const onRedis = ({ name, url }: Place) =>
  RedisSessions.layer({ prefix: name }).pipe(Layer.provide(NodeRedis.layer({ url })))
