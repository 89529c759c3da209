/** Tools for the web: pages, requests, search, a browser. */
export * as Browser from "./Browser.ts"
export * as Computer from "./Computer.ts"
export * as FetchUrl from "./FetchUrl.ts"
export * as HttpRequest from "./HttpRequest.ts"
export * as ResearchBrief from "./ResearchBrief.ts"
export * as WebReader from "./WebReader.ts"
export * as WebSearch from "./WebSearch.ts"
