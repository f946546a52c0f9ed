import java.nio.file.Path;
import java.util.concurrent.CountDownLatch;
import org.neo4j.configuration.connectors.BoltConnector;
import org.neo4j.configuration.helpers.SocketAddress;
import org.neo4j.dbms.api.DatabaseManagementService;
import org.neo4j.dbms.api.DatabaseManagementServiceBuilder;

/** A Neo4j with Bolt on 127.0.0.1 and nothing else; what FOLDER holds stays: BoltServer.java PORT FOLDER. */
class BoltServer {
    public static void main(String[] arguments) throws InterruptedException {
        int port = Integer.parseInt(arguments[0]);
        DatabaseManagementService server = new DatabaseManagementServiceBuilder(Path.of(arguments[1]))
                .setConfig(BoltConnector.enabled, true)
                .setConfig(BoltConnector.listen_address, new SocketAddress("127.0.0.1", port))
                .build();
        Runtime.getRuntime().addShutdownHook(new Thread(server::shutdown));
        System.out.println("READY");
        new CountDownLatch(1).await();
    }
}
