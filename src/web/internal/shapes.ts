/** The shapes of options, by which constructors check them. `npm run options` writes this file from the types. */

export const browserMake = "downloads?:s"

export const fetchUrlMake = "maxBytes?:n;pageLength?:n;robots?:b;userAgent?:s"

export const httpRequestMake = "maxBytes?:n;maxLength?:n"

export const nodeBrowserLayer =
  "rules:o;executablePath?:s;sandbox?:b;timeout?:n;maxContexts?:n;maxDownload?:n;args?:[s];resolve?:f"

export const nodeWebReaderLayer = "timeout?:d;maxMemory?:n"

export const researchBriefMake = "name?:s;fetch?:{maxBytes?:n;pageLength?:n;robots?:b;userAgent?:s}"

export const webSearchDuckDuckGo = "apiUrl?:s"

export const webSearchSearxng = "apiUrl:s"

export const webSearchTavily = "apiKey:~effect/Redacted~;apiUrl?:s"
