# One image for every role: `serve --role=...` says which.
FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags="-s -w" -o /out/versola . && mkdir /out/state

# No shell, no package manager, certificates and time zones; user 65532.
FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /out/versola /versola
COPY --from=build --chown=65532:65532 /out/state /var/lib/versola
WORKDIR /var/lib/versola
USER 65532:65532
EXPOSE 8080 8081 8090 8095 8096
ENTRYPOINT ["/versola"]
