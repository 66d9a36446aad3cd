// Two hosts of ns-3 meet over a link, and both are captured where IP ends and the device begins.
//
// Reads an encounter on standard input, one statement a line, and writes first.pcap and second.pcap
// into the folder of its only argument. Everything happens in virtual time:
//
//   run SEED SECONDS PACKETS
//   way RATE DELAY QUEUE LOSS REORDER REORDER_DELAY DUPLICATE      (twice: there and back)
//   set HOST NAME VALUE          (an attribute of the host's TCP or of its sockets)
//   meeting AT CALLER PORT       (followed by the two users: the caller's and the other's)
//   user ENDLESS ECHOES READING PAUSE DEAF_FROM DEAF_TO ENDS_AT END WRITES (AT OCTETS)...

#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-helper.h"

#include <cstdlib>
#include <fstream>
#include <initializer_list>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

using namespace ns3;

namespace
{

constexpr uint32_t RAW_IP = 101;
constexpr uint32_t PIECE = 1 << 16;
constexpr uint32_t MTU = 1500;

double Now()
{
    return Simulator::Now().GetSeconds();
}

// One direction of the link, which holds back, loses, reorders and doubles what arrives: to the
// device a packet that comes later is a damaged one, until the model hands it in again.
struct Way
{
    double rate, delay, loss, reorder, reorderDelay, duplicate;
    uint32_t queue;
};

class WayModel : public ErrorModel
{
  public:
    WayModel(const Way& way, Ptr<PointToPointNetDevice> device)
        : m_way(way), m_device(device), m_loss(CreateObject<RateErrorModel>()),
          m_numbers(CreateObject<UniformRandomVariable>())
    {
        m_loss->SetUnit(RateErrorModel::ERROR_UNIT_PACKET);
        m_loss->SetRate(way.loss);
    }

  private:
    bool DoCorrupt(Ptr<Packet> packet) override
    {
        if (m_handsIn)
        {
            return false;
        }
        if (!m_loss->IsCorrupt(packet))
        {
            double late = m_numbers->GetValue() < m_way.reorder ? m_way.reorderDelay : 0.0;
            Later(packet, m_way.delay + late);
            if (m_numbers->GetValue() < m_way.duplicate)
            {
                Later(packet, m_way.delay + late);
            }
        }
        return true;
    }

    void DoReset() override
    {
    }

    void Later(Ptr<Packet> packet, double delay)
    {
        Simulator::Schedule(Seconds(delay), &WayModel::HandIn, this, packet->Copy());
    }

    void HandIn(Ptr<Packet> packet)
    {
        m_handsIn = true;
        m_device->Receive(packet);
        m_handsIn = false;
    }

    Way m_way;
    Ptr<PointToPointNetDevice> m_device;
    Ptr<RateErrorModel> m_loss;
    Ptr<UniformRandomVariable> m_numbers;
    bool m_handsIn = false;
};

struct Script
{
    bool endless = false, echoes = false;
    uint32_t reading = PIECE;
    double pause = 0.0, deafFrom = 0.0, deafTo = 0.0, endsAt = -1.0;
    std::string end;
    std::vector<std::pair<double, uint32_t>> writes;
};

// One end of a connection, driven by its script.
class User
{
  public:
    User(Ptr<Socket> socket, const Script& script)
        : m_socket(socket), m_script(script), m_began(Now())
    {
        m_socket->SetRecvCallback([this](Ptr<Socket>) { Run(); });
        m_socket->SetSendCallback([this](Ptr<Socket>, uint32_t) { Run(); });
        m_socket->SetConnectCallback([this](Ptr<Socket>) { Run(); }, [this](Ptr<Socket>) { m_over = true; });
        m_socket->SetCloseCallbacks([this](Ptr<Socket>) { m_otherEnded = true; Run(); },
                                    [this](Ptr<Socket>) { m_over = true; });
        for (const auto& [at, octets] : script.writes)
        {
            m_due += octets;
            Simulator::Schedule(Seconds(at), [this, octets = octets] {
                m_due -= octets;
                m_unwritten += octets;
                Run();
            });
        }
        if (script.endsAt >= 0)
        {
            Simulator::Schedule(Seconds(script.endsAt), [this] { Run(); });
        }
        Simulator::Schedule(Seconds(script.deafTo), [this] { Run(); });
    }

    // Callbacks come from within the stack, which is not always ready for a call in return.
    void Run()
    {
        if (!m_runs.IsRunning())
        {
            m_runs = Simulator::ScheduleNow([this] { Act(); });
        }
    }

  private:
    void Act()
    {
        if (!m_over)
        {
            Read();
            Write();
            End();
        }
    }

    bool Deaf() const
    {
        double since = Now() - m_began;
        return m_script.deafFrom <= since && since < m_script.deafTo;
    }

    void Read()
    {
        while (!Deaf() && Now() >= m_readAt && m_socket->GetRxAvailable() > 0)
        {
            Ptr<Packet> data = m_socket->Recv(m_script.reading, 0);
            if (!data || data->GetSize() == 0)
            {
                return;
            }
            m_unwritten += m_script.echoes ? data->GetSize() : 0;
            if (m_script.pause > 0)
            {
                m_readAt = Now() + m_script.pause;
                Simulator::Schedule(Seconds(m_script.pause), [this] { Run(); });
            }
        }
    }

    void Write()
    {
        while (!m_ended && (m_unwritten > 0 || m_script.endless))
        {
            uint32_t piece = m_script.endless ? PIECE : std::min(m_unwritten, PIECE);
            piece = std::min(piece, m_socket->GetTxAvailable());
            if (piece == 0 || m_socket->Send(Create<Packet>(piece)) < 0)
            {
                return;
            }
            m_unwritten -= m_script.endless ? 0 : piece;
        }
    }

    void End()
    {
        bool late = m_script.endsAt >= 0 && Now() - m_began >= m_script.endsAt;
        bool done = m_script.endless || (m_due == 0 && m_unwritten == 0);
        if (!m_ended && (late || (m_script.endsAt < 0 && m_otherEnded && done)))
        {
            m_ended = true;
            if (m_script.end == "shutdown")
            {
                m_socket->ShutdownSend();
            }
            else
            {
                m_over = true;
                m_socket->Close();
            }
        }
    }

    Ptr<Socket> m_socket;
    Script m_script;
    double m_began, m_readAt = 0.0;
    uint32_t m_due = 0, m_unwritten = 0;
    bool m_ended = false, m_over = false, m_otherEnded = false;
    EventId m_runs;
};

struct Meeting
{
    double at;
    uint32_t caller, port;
    std::vector<Script> scripts;
};

std::vector<std::unique_ptr<User>> g_users;
uint64_t g_mostPackets;

// Written packet by packet: what was captured remains when the simulator ends by a fault of its own.
struct Capture
{
    std::ofstream file;
    uint64_t count = 0;

    void Open(const std::string& name)
    {
        file.open(name, std::ios::binary);
        Put({0xa1b23c4d, 0x00040002, 0, 0, 65535, RAW_IP});
        file.flush();
    }

    void Put(std::initializer_list<uint32_t> numbers)
    {
        for (uint32_t number : numbers)
        {
            file.write(reinterpret_cast<const char*>(&number), sizeof number);
        }
    }

    void Record(Ptr<const Packet> packet, Ptr<Ipv4>, uint32_t interface)
    {
        if (interface == 0)
        {
            return;
        }
        int64_t now = Simulator::Now().GetNanoSeconds();
        std::vector<uint8_t> octets(packet->GetSize());
        packet->CopyData(octets.data(), octets.size());
        uint32_t length = octets.size();
        Put({uint32_t(now / 1000000000), uint32_t(now % 1000000000), length, length});
        file.write(reinterpret_cast<const char*>(octets.data()), length);
        file.flush();
        if (++count > g_mostPackets)
        {
            Simulator::Stop();
        }
    }
};

using Attributes = std::vector<std::pair<std::string, std::string>>;

Ptr<Socket> MakeSocket(Ptr<Node> node, const Attributes& attributes)
{
    Ptr<Socket> socket = Socket::CreateSocket(node, TcpSocketFactory::GetTypeId());
    for (const auto& [name, value] : attributes)
    {
        if (!socket->SetAttributeFailSafe(name, StringValue(value)) &&
            !node->GetObject<TcpL4Protocol>()->SetAttributeFailSafe(name, StringValue(value)))
        {
            std::cerr << "no attribute " << name << " takes " << value << "\n";
            std::exit(2);
        }
    }
    return socket;
}

Script ReadScript(std::istream& words)
{
    Script script;
    std::size_t writes;
    words >> script.endless >> script.echoes >> script.reading >> script.pause >> script.deafFrom >>
        script.deafTo >> script.endsAt >> script.end >> writes;
    script.writes.resize(writes);
    for (auto& [at, octets] : script.writes)
    {
        words >> at >> octets;
    }
    return script;
}

} // namespace

int main(int argc, char** argv)
{
    if (argc != 2)
    {
        std::cerr << "usage: meet FOLDER < encounter\n";
        return 2;
    }
    uint64_t seed = 1;
    double seconds = 0;
    std::vector<Way> ways;
    std::map<uint32_t, Attributes> attributes;
    std::vector<Meeting> meetings;
    for (std::string line, word; std::getline(std::cin, line);)
    {
        std::istringstream words(line);
        words >> word;
        if (word == "run")
        {
            words >> seed >> seconds >> g_mostPackets;
        }
        else if (word == "way")
        {
            Way way{};
            words >> way.rate >> way.delay >> way.queue >> way.loss >> way.reorder >>
                way.reorderDelay >> way.duplicate;
            ways.push_back(way);
        }
        else if (word == "set")
        {
            uint32_t host;
            std::string name, value;
            words >> host >> name >> value;
            attributes[host].emplace_back(name, value);
        }
        else if (word == "meeting")
        {
            Meeting meeting{};
            words >> meeting.at >> meeting.caller >> meeting.port;
            meetings.push_back(meeting);
        }
        else if (word == "user" && !meetings.empty())
        {
            meetings.back().scripts.push_back(ReadScript(words));
        }
        if (!words)
        {
            std::cerr << "cannot read: " << line << "\n";
            return 2;
        }
    }

    RngSeedManager::SetSeed(1 + seed % 4294944442);
    GlobalValue::Bind("ChecksumEnabled", BooleanValue(true));
    NodeContainer nodes(2);
    InternetStackHelper internet;
    internet.SetIpv6StackInstall(false);
    internet.Install(nodes);
    PointToPointHelper link;
    link.SetChannelAttribute("Delay", TimeValue(Seconds(0)));
    NetDeviceContainer devices = link.Install(nodes);
    Ipv4AddressHelper addresses("10.79.0.0", "255.255.255.0");
    Ipv4InterfaceContainer interfaces = addresses.Assign(devices);
    TrafficControlHelper().Uninstall(devices);
    Capture captures[2];
    for (uint32_t host = 0; host < 2; ++host)
    {
        auto device = DynamicCast<PointToPointNetDevice>(devices.Get(host));
        device->SetMtu(MTU);
        device->SetDataRate(DataRate(uint64_t(ways[host].rate)));
        device->GetQueue()->SetMaxSize(QueueSize(QueueSizeUnit::PACKETS, ways[host].queue));
        device->SetReceiveErrorModel(CreateObject<WayModel>(ways[1 - host], device));
        captures[host].Open(std::string(argv[1]) + (host == 0 ? "/first.pcap" : "/second.pcap"));
        auto ip = nodes.Get(host)->GetObject<Ipv4L3Protocol>();
        for (const char* trace : {"Tx", "Rx"})
        {
            ip->TraceConnectWithoutContext(trace, MakeCallback(&Capture::Record, &captures[host]));
        }
        // What is the host's, not a socket's, has to be known before the first socket is made.
        MakeSocket(nodes.Get(host), attributes[host]);
    }
    for (const Meeting& meeting : meetings)
    {
        uint32_t called = 1 - meeting.caller;
        Ptr<Socket> listener = MakeSocket(nodes.Get(called), attributes[called]);
        listener->Bind(InetSocketAddress(interfaces.GetAddress(called), meeting.port));
        listener->Listen();
        listener->SetAcceptCallback(
            [](Ptr<Socket>, const Address&) { return true; },
            [&meeting](Ptr<Socket> accepted, const Address&) {
                g_users.push_back(std::make_unique<User>(accepted, meeting.scripts[1]));
                g_users.back()->Run();
            });
        Simulator::Schedule(Seconds(meeting.at), [&, called] {
            Ptr<Socket> socket = MakeSocket(nodes.Get(meeting.caller), attributes[meeting.caller]);
            g_users.push_back(std::make_unique<User>(socket, meeting.scripts[0]));
            socket->Bind();
            socket->Connect(InetSocketAddress(interfaces.GetAddress(called), meeting.port));
        });
    }
    Simulator::Stop(Seconds(seconds));
    Simulator::Run();
    Simulator::Destroy();
    return 0;
}
