import type { Approval, Tool } from "effect-deepagents"
import { Network, type Secrets } from "effect-deepagents/net"
import * as NodeNetwork from "effect-deepagents/net/NodeNetwork"
import { FetchUrl, HttpRequest, type WebReader, WebSearch } from "effect-deepagents/web"
import * as NodeBrowser from "effect-deepagents/web/NodeBrowser"
import type * as HttpClient from "effect/http/HttpClient"
import type * as Layer from "effect/Layer"
import type * as Persistence from "effect/persistence/Persistence"
import { expectTypeOf } from "vitest"

type Client = HttpClient.HttpClient

expectTypeOf(Network.layer({})).toEqualTypeOf<Layer.Layer<Client, never, Client>>()
expectTypeOf(Network.layerCached({})).toEqualTypeOf<Layer.Layer<Client, never, Client | Persistence.Persistence>>()
expectTypeOf(NodeNetwork.layer({})).toEqualTypeOf<Layer.Layer<Client>>()
expectTypeOf(NodeNetwork.layerCached({})).toEqualTypeOf<Layer.Layer<Client, never, Persistence.Persistence>>()
expectTypeOf(WebSearch.duckDuckGo()).toEqualTypeOf<Layer.Layer<WebSearch.WebSearch, never, Client>>()
expectTypeOf(NodeBrowser.layer({ rules: {} })).not.toBeAny()

const fetchUrl = FetchUrl.make()
const httpRequest = HttpRequest.make()

expectTypeOf<Tool.Services<typeof fetchUrl>>().toEqualTypeOf<Client | WebReader.WebReader>()
expectTypeOf<Tool.Services<typeof httpRequest>>().toEqualTypeOf<Client | Secrets.Secrets | Approval.Approvals>()

// @ts-expect-error -- a misspelt rule
Network.layer({ allowed: ["example.com"] })
