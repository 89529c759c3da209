/** The shapes of options, by which constructors check them. `npm run options` writes this file from the types. */

export const mcpConfigFileParse = "dialect?:'claude''cursor''vscode';workspace?:s;input?:f"

export const mcpMake = "servers?:[s];resources?:b"

export const mcpOAuthLayer = "tenant:s;redirect?:o;open:f;clientName?:s;clientMetadataUrl?:s;assertion?:f"

export const mcpServersLayer = "roots?:[s];client?:{name:s;version:s};apps?:b;maxMessage?:n"
