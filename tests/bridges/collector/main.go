// The OTLP receiver of the OpenTelemetry Collector; each batch of logs that it takes is a line of OTLP/JSON on stdout.
package main

import (
	"context"
	"fmt"
	"net"
	"os"

	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func freeAddress() string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	defer listener.Close()
	return listener.Addr().String()
}

func main() {
	address := freeAddress()
	factory := otlpreceiver.NewFactory()
	config := factory.CreateDefaultConfig().(*otlpreceiver.Config)
	endpoint := map[string]any{"endpoint": address}
	check(confmap.NewFromStringMap(map[string]any{"protocols": map[string]any{"http": endpoint}}).Unmarshal(config))
	sink, err := consumer.NewLogs(func(_ context.Context, logs plog.Logs) error {
		text, err := (&plog.JSONMarshaler{}).MarshalLogs(logs)
		fmt.Println(string(text))
		return err
	})
	check(err)
	made, err := factory.CreateLogs(context.Background(), receivertest.NewNopSettings(factory.Type()), config, sink)
	check(err)
	check(made.Start(context.Background(), componenttest.NewNopHost()))
	fmt.Println(address)
	select {}
}
